import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { useFixture } from "../fixture.ts";
import { serverBinaries } from "../server-binaries.ts";
import { CHANNEL_SESSIONS } from "./channel-sessions.ts";
import type { Exchange } from "./exchange.ts";
import { openContent, RECORDED_AREAS, type RecordedArea, type RecordedService } from "./recorded-areas.ts";
import { readRecording, writeRecording } from "./recording.ts";
import { replay, respond } from "./replay.ts";
import { messagesOf } from "./version-differences.ts";

/** After an intended change: `responses` records the responses to the same requests, `requests` makes new requests too. */
const RECORD = process.env.RECORD;
const { major } = await serverBinaries();

/** Of all areas of tables with the default settings. Execution plans depend on what was done before. */
let tables: Promise<RecordedService> | null = null;
const sharesTables = ({ name, isPlainTables }: RecordedArea) =>
  !RECORD && isPlainTables && name !== "table-execution-plans";
afterAll(async () => (await tables)?.close());

describe.each(RECORDED_AREAS)("$name", (area) => {
  const { name, open, requests } = area;
  let service: RecordedService;
  beforeAll(async () => {
    if (sharesTables(area)) tables ??= open();
    service = await (sharesTables(area) ? tables! : open());
  });
  afterAll(async () => {
    if (!sharesTables(area)) await service.close();
  });

  if (RECORD) {
    test("is recorded", async () => {
      const recorded = RECORD === "requests" ? await requests(service) : await recordedRequests(name);
      const exchanges: Exchange[] = [];
      for (const request of recorded) exchanges.push(await respond(service, request));
      await writeRecording(name, exchanges);
      expect(exchanges.length).toBeGreaterThan(0);
    });
    return;
  }

  test("responds as recorded", async () => {
    const { differences } = await replay(service, name);
    expect(differences).toEqual([]);
  });
});

describe("channels", () => {
  const service = useFixture(openContent);

  const runSessions = async () => {
    const transcripts: { readonly name: string; readonly received: readonly string[] }[] = [];
    for (const { name, run } of CHANNEL_SESSIONS) transcripts.push({ name, received: await run(service.url) });
    return transcripts;
  };

  if (RECORD) {
    test("are recorded", async () => {
      const sessions = await runSessions();
      await writeRecording("channels", sessions);
      expect(await readRecording("channels")).toEqual(sessions);
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
