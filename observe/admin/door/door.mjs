// Exchanges the token of the address for the cookie. The fragment is taken out of
// the address at once, so that it gets into no bookmark and no history.
const says = document.getElementById("says");

async function enter(token) {
  const answer = await fetch("/door/enter", { method: "POST", body: token });
  if (answer.ok) {
    location.reload();
    return;
  }
  says.textContent = "This is not the token of this bridge. It prints a new one at each start.";
  says.className = "wrong";
}

const token = new URLSearchParams(location.hash.slice(1)).get("token");
if (token) {
  history.replaceState(null, "", location.pathname + location.search);
  says.textContent = "Entering…";
  enter(token);
}
document.getElementById("form").addEventListener("submit", (event) => {
  event.preventDefault();
  enter(document.getElementById("token").value);
});
