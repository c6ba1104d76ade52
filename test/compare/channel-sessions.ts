import { RawClient } from "../realtime/raw-client.ts";
import { authorizationOf, type CallerName } from "./callers.ts";
import { replaceChance } from "./send-request.ts";

export type Session = {
  readonly name: string;
  /** The messages that the server sent, in order. */
  run(url: string): Promise<string[]>;
};

type Step =
  | { readonly say: readonly [topic: string, event: string, payload: unknown]; readonly ends?: true }
  | { readonly join: string; readonly config?: object; readonly more?: object }
  | { readonly write: readonly [method: string, path: string, body: unknown] }
  | { readonly awaits: string };

const tokenOf = (caller: CallerName) => authorizationOf(caller).Authorization?.slice("Bearer ".length);
const changesOf = (...bindings: object[]) => ({
  postgres_changes: bindings.map((binding) => ({ event: "*", schema: "public", ...binding })),
});
const asUser = { access_token: tokenOf("user 1") };
const INSERT = [
  "POST",
  "/rest/v1/odd_things",
  { code: "new", place: 1, mood: "calm", notes: { a: [1, 2.5] } },
] as const;
const REMOVE = ["DELETE", "/rest/v1/odd_things?code=eq.new", null] as const;
const CHANGE = ["PATCH", "/rest/v1/odd_things?code=eq.new", { weight: 3.25, mood: null }] as const;

const SESSIONS: Readonly<Record<string, readonly Step[]>> = {
  "a heartbeat": [{ say: ["phoenix", "heartbeat", {}] }],
  "an unknown topic": [{ say: ["elsewhere", "phx_join", {}] }],
  "an unknown event": [{ join: "realtime:a" }, { say: ["realtime:a", "dance", {}] }],
  "a message to a channel that was not joined": [
    { say: ["realtime:a", "broadcast", { type: "broadcast", event: "x" }] },
  ],
  "a join, twice": [{ join: "realtime:a" }, { join: "realtime:a" }],
  "a join and a leave": [{ join: "realtime:a" }, { say: ["realtime:a", "phx_leave", {}] }],
  "a config that is none": [{ join: "realtime:a", config: { broadcast: 7 } }],
  "a token that is none": [{ join: "realtime:a", more: { access_token: "nonsense" } }],
  "a new token that is none": [
    { join: "realtime:a" },
    { say: ["realtime:a", "access_token", { access_token: "nonsense" }], ends: true },
  ],
  "a private channel without a token": [{ join: "realtime:a", config: { private: true } }],
  "a private channel with a token": [{ join: "realtime:a", config: { private: true }, more: asUser }],
  "a broadcast to oneself": [
    // The message has no `ack`, which is sent after a commit and perhaps after the last message that is awaited.
    { join: "realtime:a", config: { broadcast: { self: true } } },
    { say: ["realtime:a", "broadcast", { type: "broadcast", event: "hello", payload: { n: 1 } }] },
    { awaits: "broadcast" },
  ],
  "a broadcast over HTTP": [
    { join: "realtime:a" },
    {
      write: ["POST", "/realtime/v1/api/broadcast", { messages: [{ topic: "a", event: "hello", payload: { n: 2 } }] }],
    },
    { awaits: "broadcast" },
  ],
  presence: [
    { join: "realtime:a", config: { presence: { key: "ada", enabled: true } } },
    { say: ["realtime:a", "presence", { type: "presence", event: "track", payload: { mood: "calm" } }] },
    { awaits: "presence_diff" },
    { say: ["realtime:a", "presence", { type: "presence", event: "untrack" }] },
  ],
  "row changes": [
    { join: "realtime:a", config: changesOf({ table: "odd_things" }) },
    { awaits: "system" },
    { write: INSERT },
    { awaits: "postgres_changes" },
    { write: CHANGE },
    { awaits: "postgres_changes" },
    { write: REMOVE },
    { awaits: "postgres_changes" },
  ],
  "row changes with a filter": [
    { join: "realtime:a", config: changesOf({ table: "odd_things", event: "INSERT", filter: "code=eq.new" }) },
    { awaits: "system" },
    { write: INSERT },
    { awaits: "postgres_changes" },
    { write: REMOVE },
  ],
  "row changes of one's own rows": [
    { join: "realtime:a", config: changesOf({ table: "notes" }), more: asUser },
    { awaits: "system" },
    { write: ["PATCH", "/rest/v1/notes?id=eq.3", { body: "changed" }] },
    { awaits: "postgres_changes" },
  ],
  "a table that is none": [{ join: "realtime:a", config: changesOf({ table: "nothing" }) }, { awaits: "system" }],
  "a table that the caller may not read": [
    { join: "realtime:a", config: changesOf({ table: "notes" }) },
    { awaits: "system" },
  ],
  "a filter that is none": [
    { join: "realtime:a", config: changesOf({ table: "odd_things", filter: "nothing=eq.1" }) },
    { awaits: "system" },
  ],
  "a filter whose value is none": [
    { join: "realtime:a", config: changesOf({ table: "odd_things", filter: "place=eq.x" }) },
    { awaits: "system" },
  ],
  "a binding that is none": [{ join: "realtime:a", config: { postgres_changes: [{ event: "DANCE" }] } }],
};

export const CHANNEL_SESSIONS: readonly Session[] = (["1.0.0", "2.0.0"] as const).flatMap((version) =>
  Object.entries(SESSIONS).map(([name, steps]) => ({
    name: `${name}, version ${version}`,
    run: (url: string) => runSteps(url, steps, version),
  })),
);

async function runSteps(url: string, steps: readonly Step[], version: "1.0.0" | "2.0.0"): Promise<string[]> {
  const client = await new RawClient(url, { version }).opened();
  const awaited = new Map<string, number>();
  for (const step of steps) {
    if ("write" in step) await write(url, step.write);
    else if ("join" in step) await client.join(step.join, step.config, step.more);
    else if ("say" in step) {
      const [topic, event, payload] = step.say;
      const ref = client.say(topic, event, payload as object, { joinRef: "1" });
      // A message without a reply is processed before a heartbeat, whose reply may come before that to another message.
      if (step.ends) await nth(client, "phx_close", 1);
      else await client.reply(/^(phx_|presence)/.test(event) ? ref : client.say("phoenix", "heartbeat", {}));
    } else {
      const count = (awaited.get(step.awaits) ?? 0) + 1;
      awaited.set(step.awaits, count);
      // Version 2.0.0 has frames of bytes for broadcasts.
      if (step.awaits === "broadcast" && version === "2.0.0") await client.binary.count(count);
      else await nth(client, step.awaits, count);
    }
  }
  await client.close();
  const texts = client.items.map((message) => replaceChance(JSON.stringify(message), url));
  return [...texts, ...client.binary.items.map((frame) => frame.toString("latin1"))];
}

function nth(client: RawClient, event: string, count: number): Promise<unknown> {
  let found = 0;
  return client.until((message) => message.event === event && ++found === count);
}

async function write(url: string, [method, path, body]: readonly [string, string, unknown]): Promise<void> {
  const response = await fetch(url + path, {
    method,
    headers: { "Content-Type": "application/json", ...authorizationOf("service") },
    ...(body !== null && { body: JSON.stringify(body) }),
  });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
}
