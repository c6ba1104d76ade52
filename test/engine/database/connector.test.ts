import { describe, expect, test } from "vitest";
import { Connector } from "../../../engine/database/connector.ts";

const always = () => true;

describe("the connector", () => {
  test("tries until it succeeds; while it fails one caller tries for all", async () => {
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
    const connector = new Connector(connect, (error) => failures.push(error));
    const opened = await Promise.all(Array.from({ length: 5 }, () => connector.open(always)));
    expect(opened).toEqual(new Array(5).fill("connection"));
    expect(failures).toHaveLength(8);
    // Five find out together, three more attempts fail alone, then the ninth succeeds and the others follow it.
    expect(atOnce.slice(0, 9)).toEqual([1, 2, 3, 4, 5, 1, 1, 1, 1]);
  });

  test("gives up when nobody wants the connection any more", async () => {
    let wanted = true;
    const connector = new Connector(
      async () => {
        throw new Error("away");
      },
      () => {
        wanted = false;
      },
    );
    expect(await connector.open(() => wanted)).toBeNull();
  });

  test("stops trying when it is closed", async () => {
    const connector = new Connector(
      async () => {
        throw new Error("away");
      },
      () => {},
    );
    const opening = [connector.open(always), connector.open(always)];
    connector.close();
    expect(await Promise.all(opening)).toEqual([null, null]);
  });
});
