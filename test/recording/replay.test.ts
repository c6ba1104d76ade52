import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { serverBinaries } from "../server-binaries.ts";
import { CHANNEL_SESSIONS } from "./channel-sessions.ts";
import type { Exchange } from "./exchange.ts";
import { readRecording, writeRecording } from "./recording.ts";
import { replay, respond } from "./replay.ts";
import { messagesOf } from "./version-differences.ts";
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

  if (RECORD) {
    test("is recorded", async () => {
      const recorded = RECORD === "requests" ? await requests(world) : await recordedRequests(name);
      const exchanges: Exchange[] = [];
      for (const request of recorded) exchanges.push(await respond(world, request));
      await writeRecording(name, exchanges);
      expect(exchanges.length).toBeGreaterThan(0);
    });
    return;
  }

  test("responds as recorded", async () => {
    const { differences } = await replay(world, name);
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
