import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { serverBinaries } from "../server-binaries.ts";
import { CHANNEL_SESSIONS } from "./channel-sessions.ts";
import { type Exchange, send } from "./exchange.ts";
import { readRecording, writeRecording } from "./recording.ts";
import { answersOtherwise, messagesOf } from "./version-differences.ts";
import { openContent, RECORDED_AREAS, type World } from "./worlds.ts";

/** After an intended change: `responses` records the responses to the same requests, `requests` makes new requests too. */
const RECORD = process.env.RECORD;
const { major } = await serverBinaries();

describe.each(RECORDED_AREAS)("$name", ({ name, open, requests }) => {
  let world: World;
  beforeAll(async () => {
    world = await open();
  });
  afterAll(() => world.close());

  const respond = async (request: Exchange["request"]): Promise<Exchange> => {
    if (!["GET", "HEAD", "OPTIONS"].includes(request.method)) await world.rewind();
    return { request, response: await send(world.url, request) };
  };

  if (RECORD) {
    test("is recorded", async () => {
      const recorded = RECORD === "requests" ? await requests(world) : await recordedRequests(name);
      const exchanges: Exchange[] = [];
      for (const request of recorded) exchanges.push(await respond(request));
      await writeRecording(name, exchanges);
      expect(exchanges.length).toBeGreaterThan(0);
    });
    return;
  }

  test("responds as recorded", async () => {
    const differences: string[] = [];
    const exchanges = await readRecording<Exchange>(name);
    for (const recorded of exchanges.filter(({ request }) => !answersOtherwise(major, request))) {
      const { response } = await respond(recorded.request);
      const difference = describeDifference(recorded.response, response);
      if (difference !== null) differences.push(`${describeRequest(recorded.request)}\n${difference}`);
    }
    expect(differences).toEqual([]);
  });
});

describe("channels", () => {
  let world: World;
  beforeAll(async () => {
    world = await openContent();
  });
  afterAll(() => world.close());

  const runSessions = async () => {
    const transcripts: { readonly name: string; readonly received: readonly string[] }[] = [];
    for (const { name, run } of CHANNEL_SESSIONS) transcripts.push({ name, received: await run(world.url) });
    return transcripts;
  };

  if (RECORD) {
    test("are recorded", async () => {
      await writeRecording("channels", await runSessions());
    });
    return;
  }

  test("send the messages that were recorded", async () => {
    expect(await runSessions()).toEqual(messagesOf(major, await readRecording("channels")));
  });
});

async function recordedRequests(name: string): Promise<Exchange["request"][]> {
  return (await readRecording<Exchange>(name)).map(({ request }) => request);
}

function describeRequest({ method, path, headers, body }: Exchange["request"]): string {
  const text = body === null ? "" : Buffer.from(body, "base64").toString("utf8").slice(0, 500);
  return `${method} ${path} ${JSON.stringify(headers)} ${text}`;
}

/** Null where they are equal. */
function describeDifference(recorded: Exchange["response"], now: Exchange["response"]): string | null {
  const names = [...new Set([...Object.keys(recorded.headers), ...Object.keys(now.headers)])];
  const differing = names.filter((name) => recorded.headers[name] !== now.headers[name]);
  const lines = [
    ...(recorded.status === now.status ? [] : [`status ${recorded.status}, now ${now.status}`]),
    ...differing.map((name) => `${name}: ${recorded.headers[name]}, now ${now.headers[name]}`),
    ...(recorded.body === now.body ? [] : describeBodies(recorded.body, now.body)),
  ];
  return lines.length === 0 ? null : lines.join("\n");
}

/** Both from a little before the first character that differs. */
function describeBodies(recorded: string, now: string): string[] {
  const at = [...recorded].findIndex((character, index) => character !== now[index]);
  const start = Math.max(0, (at === -1 ? recorded.length : at) - 80);
  return [`recorded …${recorded.slice(start, start + 240)}`, `now      …${now.slice(start, start + 240)}`];
}
