import { describe, expect, test } from "vitest";
import { ConnectionOpener } from "../../../postgres/database/connection-pools.ts";
import { until } from "../../until.ts";

const always = () => true;
const away = async () => {
  throw new Error("away");
};

describe("the connector", () => {
  test("retries until it succeeds; one caller retries for all", async () => {
    let attempts = 0;
    let running = 0;
    const atOnce: number[] = [];
    const failures: Error[] = [];
    const connect = async () => {
      const attempt = ++attempts;
      atOnce.push(++running);
      await new Promise(setImmediate);
      running--;
      if (attempt <= 8) throw new Error("away");
      return "connection";
    };
    const connector = new ConnectionOpener({
      connect,
      onFailure: (error) => failures.push(error),
      isAwaited: () => true,
    });
    const opened = await Promise.all(Array.from({ length: 5 }, () => connector.open(always)));
    expect(opened).toEqual(new Array(5).fill("connection"));
    expect(failures).toHaveLength(8);
    // Five find out together, three more attempts fail alone, then the ninth succeeds and the others follow it.
    expect(atOnce.slice(0, 9)).toEqual([1, 2, 3, 4, 5, 1, 1, 1, 1]);
  });

  test("stops when no caller waits for the connection any more", async () => {
    let wanted = true;
    const connector = new ConnectionOpener({
      connect: away,
      onFailure: () => {
        wanted = false;
      },
      isAwaited: () => false,
    });
    expect(await connector.open(() => wanted)).toBeNull();
  });

  test("stops trying when it is closed", async () => {
    const connector = new ConnectionOpener({ connect: away, onFailure: () => {}, isAwaited: () => false });
    const opening = [connector.open(always), connector.open(always)];
    connector.close();
    expect(await Promise.all(opening)).toEqual([null, null]);
  });

  test("tries more often while a request waits", async () => {
    const attempts = { awaited: 0, unawaited: 0 };
    const connectors = (["awaited", "unawaited"] as const).map((name) => {
      const connect = async () => {
        attempts[name]++;
        return away();
      };
      return new ConnectionOpener({ connect, onFailure: () => {}, isAwaited: () => name === "awaited" });
    });
    const opening = connectors.map((connector) => connector.open(always));
    await until(() => attempts.awaited === 12);
    expect(attempts.unawaited).toBeLessThan(9);
    for (const connector of connectors) connector.close();
    await Promise.all(opening);
  });
});
