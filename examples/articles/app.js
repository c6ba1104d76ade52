const { url, key } = await (await fetch("config.json")).json();

const find = (selector) => document.querySelector(selector);

// Signing in ----------------------------------------------------------------------------------------------------------

let session = JSON.parse(sessionStorage.getItem("session"));

async function post(path, body, headers = {}) {
  const response = await fetch(url + path, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error.message);
  return answer;
}

function keep(pair) {
  session = pair && { ...pair, expiresAt: Date.now() + pair.expiresIn * 1000, claims: claimsOf(pair.accessToken) };
  if (session) sessionStorage.setItem("session", JSON.stringify(session));
  else sessionStorage.removeItem("session");
}

function claimsOf(token) {
  const bytes = Uint8Array.from(atob(token.split(".")[1].replace(/-/g, "+").replace(/_/g, "/")), (c) =>
    c.charCodeAt(0),
  );
  return JSON.parse(new TextDecoder().decode(bytes));
}

/** A token that is valid for at least one more minute. Two tabs that refresh it at once receive the same pair, because of the key. */
async function accessToken() {
  if (!session) return key;
  if (session.expiresAt > Date.now() + 60_000) return session.accessToken;
  const { refreshToken } = session;
  try {
    keep(await post("/auth/refresh", { refreshToken }, { "Idempotency-Key": refreshToken.slice(-40) }));
  } catch {
    keep(null);
    showWho();
  }
  return session?.accessToken ?? key;
}

// Rows ----------------------------------------------------------------------------------------------------------------

const client = supabase.createClient(url, key, { accessToken });

async function list() {
  const { data, error } = await client
    .from("articles")
    .select("id, title, status, author_id, author:users(name)")
    .order("created_at", { ascending: false })
    .limit(20);
  if (error) return alertWith(error);
  find("#articles").replaceChildren(...data.map(toItem));
}

function toItem({ id, title, status, author_id, author }) {
  const item = find("#article").content.cloneNode(true);
  item.querySelector("h2").textContent = title;
  item.querySelector(".about").textContent = `${author?.name ?? "somebody"} · ${status.toLowerCase()}`;
  const isMine = session?.claims.sub === String(author_id);
  // Drafts of others are in the list only if the policies of the database show them.
  item.querySelector("li").classList.toggle("draft", status !== "PUBLISHED");
  const publish = item.querySelector(".publish");
  publish.hidden = !isMine || status === "PUBLISHED";
  publish.onclick = () => change(client.rpc("publish_article", { id }));
  const remove = item.querySelector(".delete");
  remove.hidden = !isMine;
  remove.onclick = () => change(client.from("articles").delete().eq("id", id));
  return item;
}

/** The channel reports each change, to this window as to all others. */
async function change(request) {
  const { error } = await request;
  alertWith(error);
  return !error;
}

// Live ----------------------------------------------------------------------------------------------------------------

client
  .channel("articles")
  .on("postgres_changes", { event: "*", schema: "public", table: "articles" }, list)
  .subscribe((status) => {
    find("#status").textContent = status === "SUBSCRIBED" ? "Live" : status;
    // Events before the subscription began were not received.
    if (status === "SUBSCRIBED") list();
  });

// The page ------------------------------------------------------------------------------------------------------------

function alertWith(error) {
  find("#alert").hidden = !error;
  find("#alert").textContent = error?.message ?? "";
}

function showWho() {
  find("#sign-in").hidden = session !== null;
  find("#sign-out").hidden = session === null;
  find("#write").hidden = session === null;
  find("#who").textContent = session?.claims.name ?? "";
}

function onSubmit(selector, work) {
  const form = find(selector);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      if (await work(Object.fromEntries(new FormData(form)))) form.reset();
    } catch (error) {
      alertWith(error);
    }
  });
}

onSubmit("#sign-in", async (credentials) => {
  keep(await post("/auth/login", credentials));
  await signedInOrOut();
  return true;
});
onSubmit("#sign-out", async () => {
  const token = await accessToken();
  keep(null);
  await post("/auth/logout", {}, { Authorization: `Bearer ${token}` });
  await signedInOrOut();
  return true;
});
onSubmit("#write", ({ title, content }) => change(client.from("articles").insert({ title, content })));

async function signedInOrOut() {
  alertWith(null);
  showWho();
  await client.realtime.setAuth();
  await list();
}

showWho();
