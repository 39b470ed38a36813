package redisstore

import (
	"crypto/sha1"
	"encoding/hex"

	"github.com/redis/rueidis"
)

// Each record is a key: its version, a space, its value. It expires by itself. The records of a
// session but its own are named by the members of a set, the session's index: of each key
// what follows the session. The index outlives them all; a member may name a record that is
// gone, and the last one stays, so that the index never begins anew without its expiry.
//
// Another layout needs other names of keys: scripts of older bridges run beside the newer
// ones. The first one had a hash, under the session and "r", in place of the index.

// replaceText replaces records. Its arguments are of each one the version and the space that
// it begins with, the number of their last byte, the new record and its lifetime in
// milliseconds. It returns the numbers of those that begin otherwise, or are not there.
// Numbers are passed as text: what a script makes of one costs more than the comparison.
const replaceText = `
local call, pcall, failed = redis.call, redis.pcall, {}
for i, key in ipairs(KEYS) do
  local a = 4 * i
  if pcall('GETRANGE', key, '0', ARGV[a - 2]) == ARGV[a - 3] then
    call('SET', key, ARGV[a - 1], 'PX', ARGV[a])
  else
    failed[#failed + 1] = i
  end
end
return failed
`

// replaceSHA is what a server calls that script.
var replaceSHA = shaOf(replaceText)

// script is one that the client library runs, or alone.
type script struct {
	*rueidis.Lua
	text, sha string
}

func newScript(text string) *script { return &script{rueidis.NewLuaScript(text), text, shaOf(text)} }

func shaOf(script string) string {
	sum := sha1.Sum([]byte(script))
	return hex.EncodeToString(sum[:])
}

// longestOf returns how long the longest-lived of a session's records lives but for its own, in milliseconds.
const longestOf = `
local function longestOf(base)
  local longest = 0
  for _, member in ipairs(redis.call('SMEMBERS', base .. 'i')) do
    longest = math.max(longest, redis.call('PTTL', base .. member))
  end
  return longest
end
`

// commitScript makes changes. Its keys are the index, and of each change the record; its
// arguments are how many members of the index to look at, and of each change the version
// that it replaces or -1, its lifetime in milliseconds, below 0 where it is to live as long as the
// session's other records, or 0 to delete, the value, and the key of
// a record that was sent ahead in place of that or "" (see ahead). It
// returns the number of the change that does not apply, or how long the index lives, in
// milliseconds below zero, 0: there is none; and how many of the members that it looked at named nothing, -1: it may
// not rename what was sent ahead, and has changed nothing.
var commitScript = newScript(longestOf + `
local index, versions = KEYS[1], {}
local function leave(answer)
  for i = 2, #KEYS do
    if ARGV[4 * i - 3] ~= '' then redis.call('UNLINK', ARGV[4 * i - 3]) end
  end
  return answer
end
for i = 2, #KEYS do
  local raw = redis.pcall('GETRANGE', KEYS[i], 0, 20)
  local number = type(raw) == 'string' and string.match(raw, '^%d+') or ''
  local version = #number <= 15 and tonumber(number) or 0
  local replaces = tonumber(ARGV[4 * i - 6])
  if replaces >= 0 and replaces ~= version then return leave({i - 1, 0}) end
  versions[i] = version + 1
end
for i = 2, #KEYS do
  if ARGV[4 * i - 3] ~= '' and redis.call('EXISTS', ARGV[4 * i - 3]) == 0 then return leave(redis.error_reply('ERR what was sent ahead is gone')) end
end
for i = 2, #KEYS do
  if ARGV[4 * i - 3] ~= '' and redis.pcall('RENAME', ARGV[4 * i - 3], KEYS[i]).err then return leave({0, -1}) end
end
local longest, least = 0, 0
for i = 2, #KEYS do
  local ttl, member = tonumber(ARGV[4 * i - 5]), string.sub(KEYS[i], #index)
  if ttl < 0 then ttl, least = -ttl, -ttl end
  if ARGV[4 * i - 3] ~= '' then
    redis.call('PEXPIRE', KEYS[i], ttl)
  elseif ttl > 0 then
    redis.call('SET', KEYS[i], string.format('%.0f ', versions[i]) .. ARGV[4 * i - 4], 'PX', ttl)
  else
    redis.call('DEL', KEYS[i])
  end
  if member ~= 's' and ttl > 0 then
    redis.call('SADD', index, member)
    if ttl > longest then longest = ttl end
  elseif member ~= 's' and redis.call('SCARD', index) > 1 then
    redis.call('SREM', index, member)
  end
end
if least > 0 then
  local calls = longestOf(string.sub(index, 1, -2))
  if calls > least then redis.call('PEXPIRE', string.sub(index, 1, -2) .. 's', calls) end
end
local gone = 0
if ARGV[1] ~= '0' then
  local base = string.sub(index, 1, -2)
  local members, keys = redis.call('SRANDMEMBER', index, ARGV[1]), {}
  for i, member in ipairs(members) do keys[i] = base .. member end
  if #keys > 0 and redis.call('EXISTS', unpack(keys)) < #keys then
    for i, key in ipairs(keys) do
      if redis.call('EXISTS', key) == 0 and redis.call('SCARD', index) > 1 then gone = gone + redis.call('SREM', index, members[i]) end
    end
  end
end
local lives = redis.call('PTTL', index)
if lives == -1 then -- it began anew after the end of the session, of which who wrote to it did not know
  longest = math.max(longest, longestOf(string.sub(index, 1, -2)))
end
if longest > lives then
  lives = 2 * longest
  redis.call('PEXPIRE', index, lives)
end
return {lives > 0 and -lives or 0, gone}
`)

// loadScript returns all live records: of each what follows the session in its key, its
// lifetime in milliseconds, its version and its value, without values when its argument
// says so. What is no record, and was written by somebody else, is left alone.
var loadScript = newScript(`
local out, base = {}, string.sub(KEYS[1], 1, -2)
local function add(member)
  local raw
  if ARGV[1] == 'heads' then
    raw = redis.pcall('GETRANGE', base .. member, 0, 20)
  else
    raw = redis.pcall('GET', base .. member)
  end
  if not raw or raw == '' then return false end
  if type(raw) ~= 'string' then return true end
  local version, start = string.match(raw, '^(%d+) ()')
  if not version or member == '' then return true end
  out[#out + 1] = member
  out[#out + 1] = string.format('%.0f', redis.call('PTTL', base .. member))
  out[#out + 1] = version
  out[#out + 1] = ARGV[1] == 'heads' and '' or string.sub(raw, start)
  return true
end
add('s')
for _, member in ipairs(redis.call('SMEMBERS', KEYS[1])) do
  if not add(member) and redis.call('SCARD', KEYS[1]) > 1 then redis.call('SREM', KEYS[1], member) end
end
return out
`)

// touchScript has a session's record live for as many milliseconds as its argument says, or as long as the others do.
var touchScript = newScript(longestOf + `
if redis.call('PTTL', KEYS[1]) < 0 then return 0 end
local longest = longestOf(string.sub(KEYS[1], 1, -2))
return redis.call('PEXPIRE', KEYS[1], math.max(tonumber(ARGV[1]), longest))
`)

// endScript removes all records of a session.
var endScript = newScript(`
local base = string.sub(KEYS[1], 1, -2)
for _, member in ipairs(redis.call('SMEMBERS', KEYS[1])) do
  redis.call('UNLINK', base .. member)
end
redis.call('UNLINK', KEYS[1], base .. 's')
return 0
`)
