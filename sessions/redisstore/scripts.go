package redisstore

import "github.com/redis/rueidis"

// A session's record is kept as its version and its value. Each other one is two fields of
// the hash: its value, and under the same name behind a colon its version and the time of
// its expiry in milliseconds. So scripts need not touch values, which are long. Another
// layout needs another name of its key: scripts of older bridges run beside the newer ones.
const lua = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
`

// commitScript makes changes: for each one its field, the version that it replaces or
// -1, its lifetime in milliseconds or 0 to delete, and the value. It returns 0, or the
// number of the change that does not apply.
var commitScript = rueidis.NewLuaScript(lua + `
local versions = {}
for i = 1, #ARGV, 4 do
  local field, replaces, version = ARGV[i], tonumber(ARGV[i + 1]), 0
  if field == 's' then
    local raw = redis.call('GET', KEYS[1])
    version = raw and tonumber(string.match(raw, '^%d+')) or 0
  else
    local head = redis.call('HGET', KEYS[2], ':' .. field)
    if head then
      local v, till = string.match(head, '^(%d+) (%d+)')
      if tonumber(till) > now then version = tonumber(v) end
    end
  end
  if replaces >= 0 and replaces ~= version then return (i + 3) / 4 end
  versions[i] = version + 1
end
local longest = 0
for i = 1, #ARGV, 4 do
  local field, ttl = ARGV[i], tonumber(ARGV[i + 2])
  if field == 's' and ttl == 0 then
    redis.call('DEL', KEYS[1])
  elseif field == 's' then
    redis.call('SET', KEYS[1], string.format('%.0f ', versions[i]) .. ARGV[i + 3], 'PX', ttl)
  elseif ttl == 0 then
    redis.call('HDEL', KEYS[2], field, ':' .. field)
  else
    redis.call('HSET', KEYS[2], field, ARGV[i + 3], ':' .. field, string.format('%.0f %.0f', versions[i], now + ttl))
    if ttl > longest then longest = ttl end
  end
end
if longest > 0 and longest > redis.call('PTTL', KEYS[2]) then
  redis.call('PEXPIRE', KEYS[2], longest)
end
return 0
`)

// loadScript returns all live records: field, version, lifetime in milliseconds and
// value of each, without values when its argument says so.
var loadScript = rueidis.NewLuaScript(lua + `
local out = {}
local function add(field, version, ttl, value)
  if ARGV[1] == 'heads' then value = '' end
  out[#out + 1] = field
  out[#out + 1] = version
  out[#out + 1] = string.format('%.0f', ttl)
  out[#out + 1] = value
end
local raw = redis.call('GET', KEYS[1])
if raw then
  local version, start = string.match(raw, '^(%d+) ()')
  add('s', version, redis.call('PTTL', KEYS[1]), string.sub(raw, start))
end
local all = redis.call('HGETALL', KEYS[2])
local values = {}
for i = 1, #all, 2 do values[all[i]] = all[i + 1] end
for i = 1, #all, 2 do
  if string.sub(all[i], 1, 1) == ':' then
    local field = string.sub(all[i], 2)
    local version, till = string.match(all[i + 1], '^(%d+) (%d+)')
    till = tonumber(till)
    if till > now then
      add(field, version, till - now, values[field])
    else
      redis.call('HDEL', KEYS[2], field, all[i])
    end
  end
end
return out
`)
