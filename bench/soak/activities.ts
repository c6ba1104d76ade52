import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket } from "ws";

/** A complete activity of a client: it closes what it opens, and deletes what it writes. */
export type Activity = { readonly name: string; readonly share: number; run(client: Client): Promise<void> };

export type Client = {
  /** The URL of the service, without a slash at its end. */
  readonly url: string;
  readonly apiKey: string;
  /** The token of a user who may write. */
  readonly token: string;
  readonly credentials: { readonly username: string; readonly password: string };
};

const LIST = "{ articles(first: 20) { totalCount edges { node { id title author { name } } } } }";
const CREATE = `mutation { createArticle(input: {title: "While it soaks", content: "again and again", status: PUBLISHED}) { article { id } } }`;
const DELETE = "mutation ($id: ID!) { deleteArticle(id: $id) }";
const SUBSCRIPTION = "subscription { onArticleCreated { id title } }";
const CHANGES = { postgres_changes: [{ event: "INSERT", schema: "public", table: "articles" }] };

export const ACTIVITIES: readonly Activity[] = [
  {
    name: "read a table",
    share: 12,
    run: (client) => get(client, "/rest/v1/articles?select=id,title,author:users(name)&limit=20&order=id"),
  },
  { name: "call a function", share: 4, run: (client) => post(client, "/rest/v1/rpc/search", { keyword: "title" }) },
  { name: "read resources", share: 6, run: (client) => get(client, "/api/v1/articles?limit=10&fields=id,title") },
  { name: "ask GraphQL", share: 6, run: (client) => graphql(client, LIST) },
  { name: "write and delete", share: 4, run: async (client) => remove(client, await create(client)) },
  {
    name: "sign in and refresh",
    share: 1,
    run: async (client) => {
      const { refreshToken } = await post<{ refreshToken: string }>(client, "/auth/login", client.credentials);
      await post(client, "/auth/refresh", { refreshToken });
    },
  },
  { name: "subscribe to an event", share: 1, run: subscribe },
  { name: "follow changes", share: 1, run: follow },
];

async function subscribe(client: Client): Promise<void> {
  const socket = new WebSocket(`${client.url.replace(/^http/, "ws")}/graphql`, "graphql-transport-ws");
  const heard = hearing(socket);
  await once(socket, "open");
  socket.send(JSON.stringify({ type: "connection_init", payload: { Authorization: `Bearer ${client.token}` } }));
  await heard((message) => message.type === "connection_ack");
  socket.send(JSON.stringify({ id: "1", type: "subscribe", payload: { query: SUBSCRIPTION } }));
  const delivered = heard((message) => message.type === "next" && message.id === "1").then(() => true);
  // The protocol has no message that a subscription is in effect, so an article that is created too early is not delivered.
  for (let isDelivered = false; !isDelivered; ) {
    const id = await create(client);
    isDelivered = await Promise.race([delivered, sleep(1000, false)]);
    await remove(client, id);
  }
  await closed(socket);
}

async function follow(client: Client): Promise<void> {
  const socket = new WebSocket(
    `${client.url.replace(/^http/, "ws")}/realtime/v1/websocket?apikey=${client.apiKey}&vsn=1.0.0`,
  );
  const heard = hearing(socket);
  await once(socket, "open");
  const join = { topic: "realtime:soak", event: "phx_join", ref: "1", join_ref: "1" };
  socket.send(JSON.stringify({ ...join, payload: { config: CHANGES, access_token: client.token } }));
  await heard((message) => message.event === "system");
  const id = await create(client);
  await heard((message) => message.event === "postgres_changes");
  await remove(client, id);
  await closed(socket);
}

// biome-ignore lint/suspicious/noExplicitAny: what the server says is what its protocol says.
type Message = any;

/** Waits for a message among those that have arrived or will arrive. */
function hearing(socket: WebSocket): (isWanted: (message: Message) => boolean) => Promise<void> {
  const messages: Message[] = [];
  let news = Promise.withResolvers<void>();
  const print = () => {
    news.resolve();
    news = Promise.withResolvers();
  };
  socket.on("message", (data) => {
    messages.push(JSON.parse(String(data)));
    print();
  });
  let failure: Error | null = null;
  socket.on("close", (code) => {
    failure = new Error(`The socket was closed with ${code}`);
    print();
  });
  socket.on("error", () => {});
  return async (isWanted) => {
    while (!messages.some(isWanted)) {
      if (failure) throw failure;
      await news.promise;
    }
  };
}

async function closed(socket: WebSocket): Promise<void> {
  socket.close();
  if (socket.readyState !== WebSocket.CLOSED) await once(socket, "close");
}

async function create(client: Client): Promise<string> {
  const { createArticle } = await graphql<{ createArticle: { article: { id: string } } }>(client, CREATE);
  return createArticle.article.id;
}

async function remove(client: Client, id: string): Promise<void> {
  await graphql(client, DELETE, { id });
}

async function graphql<Data>(client: Client, query: string, variables: object = {}): Promise<Data> {
  const { data, errors } = await post<{ data: Data; errors?: object[] }>(client, "/graphql", { query, variables });
  if (errors) throw new Error(JSON.stringify(errors));
  return data;
}

async function get(client: Client, path: string): Promise<void> {
  await ask(client, path);
}

function post<Answer>(client: Client, path: string, body: object): Promise<Answer> {
  return ask(client, path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  }) as Promise<Answer>;
}

async function ask({ url, apiKey, token }: Client, path: string, init: RequestInit = {}): Promise<unknown> {
  const isSignIn = path.startsWith("/auth/");
  const headers = { ...init.headers, apikey: apiKey, ...(!isSignIn && { Authorization: `Bearer ${token}` }) };
  const response = await fetch(url + path, { ...init, headers });
  const text = await response.text();
  if (!response.ok) throw new Error(`${init.method ?? "GET"} ${path}: ${response.status} ${text}`);
  return JSON.parse(text);
}
