import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import { type Listener, type ListenerOptions, openListener } from "../../../postgres/client/listen.ts";
import { useClient, useDatabase } from "../../database.ts";
import { openWire } from "../../postgres-wire.ts";
import { until } from "../../until.ts";

const opened: { close(): Promise<unknown> }[] = [];
const log = { info: () => {}, warn: () => {}, error: () => {} };

const database = useDatabase({ template: "empty" });
const owner = useClient(database.ownerUrl);
afterEach(async () => {
  for (const each of opened.splice(0)) await each.close();
  // One that was still connecting has a backend for a moment more, which is not the next test's.
  await until(async () => (await backends()).length === 0);
});

function open(options: Partial<ListenerOptions> = {}): Listener {
  const listener = openListener({ url: database.ownerUrl, log, applicationName: "listener under test", ...options });
  opened.push(listener);
  return listener;
}

const notify = (channel: string, payload = "") => owner.query("select pg_notify($1, $2)", [channel, payload]);
const backends = async () => {
  const { rows } = await owner.query<{ pid: number }>(
    "select pid from pg_stat_activity where application_name = 'listener under test' and datname = current_database()",
  );
  return rows.map(({ pid }) => pid);
};

async function openLine() {
  const wire = await openWire(database.ownerUrl);
  opened.push(wire);
  return wire;
}

describe("notifications", () => {
  test("reach every handler of their channel, and no other", async () => {
    const listener = open();
    const heard: string[] = [];
    await listener.listen("news", (payload) => heard.push(`a ${payload}`));
    await listener.listen("news", (payload) => heard.push(`b ${payload}`));
    await listener.listen('Odd "channel"', (payload) => heard.push(`c ${payload}`));
    await notify("news", "1");
    await notify('Odd "channel"', "2");
    await notify("other", "3");
    await until(() => heard.length >= 3);
    expect(heard.sort()).toEqual(["a 1", "b 1", "c 2"]);
  });

  test("stop for a removed handler, and continue for the others", async () => {
    const listener = open();
    const heard: string[] = [];
    const handler = () => heard.push("leaving");
    const leave = await listener.listen("news", handler);
    await listener.listen("news", (payload) => heard.push(payload));
    leave();
    await notify("news", "1");
    await until(() => heard.includes("1"));
    expect(heard).toEqual(["1"]);
  });

  test("are unsubscribed when the last handler has left", async () => {
    const listener = open();
    const heard: string[] = [];
    const leave = await listener.listen("news", () => heard.push("news"));
    leave();
    // Commands keep their order: when this answers, the one before has been obeyed.
    await listener.listen("other", () => heard.push("other"));
    await notify("news");
    await notify("other");
    await until(() => heard.length > 0);
    expect(heard).toEqual(["other"]);
  });

  test("continue when a handler throws", async () => {
    const errors: unknown[] = [];
    const listener = open({ log: { ...log, error: (fields: object) => errors.push(fields) } });
    const heard: string[] = [];
    await listener.listen("news", () => {
      throw new Error("no");
    });
    await listener.listen("news", (payload) => heard.push(payload));
    await notify("news", "1");
    await until(() => heard.length > 0);
    expect(errors).toHaveLength(1);
  });

  test("reach a thousand handlers at once", async () => {
    const listener = open();
    let heard = 0;
    const handle = () => heard++;
    await Promise.all(Array.from({ length: 1000 }, (_, index) => listener.listen(`news ${index % 10}`, handle)));
    await notify("news 3");
    await expect.poll(() => heard === 100).toBe(true);
  });

  test("a channel with too long a name is refused", async () => {
    await expect(open().listen("x".repeat(64), () => {})).rejects.toThrow(RangeError);
  });
});

describe("when the connection is lost", () => {
  test("a killed backend is replaced, and listeners are notified of the gap", async () => {
    const listener = open();
    const heard: string[] = [];
    let gaps = 0;
    listener.onGap(() => gaps++);
    await listener.listen("news", (payload) => heard.push(payload));
    // One may belong to an earlier test, if it had no name yet when that ended.
    const pids = await backends();
    await owner.query("select pg_terminate_backend(pid) from unnest($1::int[]) as pid", [pids]);
    await until(() => gaps === 1);
    expect(listener.isListening()).toBe(true);
    expect(pids).toEqual(expect.not.arrayContaining(await backends()));
    await notify("news", "again");
    await until(() => heard.length > 0);
    expect(heard).toEqual(["again"]);
  });

  test("a silent session is detected by the heartbeat", async () => {
    const wire = await openLine();
    const listener = open({ url: wire.url, heartbeatMs: 30, answerWithinMs: 200 });
    const heard: string[] = [];
    let gaps = 0;
    listener.onGap(() => gaps++);
    await listener.listen("news", (payload) => heard.push(payload));
    await sleep(150);
    expect(gaps).toBe(0);
    wire.silence();
    await until(() => gaps === 1);
    await notify("news", "again");
    await until(() => heard.length > 0);
  });

  test("connecting is retried until the database is available, and then waiting callers continue", async () => {
    const wire = await openLine();
    wire.cut();
    const warnings: object[] = [];
    const listener = open({ url: wire.url, log: { ...log, warn: (fields: object) => warnings.push(fields) } });
    const heard: string[] = [];
    const listening = listener.listen("news", (payload) => heard.push(payload));
    await sleep(300);
    expect(listener.isListening()).toBe(false);
    wire.repair();
    await listening;
    await notify("news", "1");
    await until(() => heard.length > 0);
    expect(warnings).toHaveLength(1);
  });

  test("a handler that was removed meanwhile stays removed", async () => {
    const wire = await openLine();
    const listener = open({ url: wire.url });
    const heard: string[] = [];
    const leave = await listener.listen("news", () => heard.push("leaving"));
    await listener.listen("other", () => heard.push("other"));
    wire.cut();
    await until(() => !listener.isListening());
    leave();
    wire.repair();
    await until(() => listener.isListening());
    await notify("news");
    await notify("other");
    await until(() => heard.length > 0);
    expect(heard).toEqual(["other"]);
  });
});

describe("closing", () => {
  test("ends the session, and listening is refused from then on", async () => {
    const listener = open();
    await listener.listen("news", () => {});
    expect(await backends()).toHaveLength(1);
    await listener.close();
    await until(async () => (await backends()).length === 0);
    await expect(listener.listen("news", () => {})).rejects.toThrow("closed");
  });

  test("rejects callers that wait to listen, while the database is unavailable", async () => {
    const wire = await openLine();
    wire.cut();
    const listener = open({ url: wire.url });
    const listening = listener.listen("news", () => {});
    const refused = expect(listening).rejects.toThrow("closed");
    await listener.close();
    await refused;
  });

  test("right after opening leaves no connection behind", async () => {
    const listener = open();
    await listener.close();
    await sleep(100);
    expect(await backends()).toEqual([]);
  });
});
