import { describe, expect, test } from "vitest";
import { AvailabilityMonitor } from "../../../postgres/database/database-availability.ts";

function keeper() {
  const result: string[] = [];
  const logged: string[] = [];
  const log = {
    info: (_fields: object, message: string) => void logged.push(message),
    warn: (_fields: object, message: string) => void logged.push(message),
  };
  return { told: result, logged, condition: new AvailabilityMonitor(log, ({ status }) => result.push(status)) };
}

describe("the availability of the database", () => {
  test("logs each change once", () => {
    const { told: result, logged, condition } = keeper();
    for (const _ of [1, 2]) condition.up();
    for (const _ of [1, 2, 3]) condition.down(new Error("gone"));
    expect(condition.current).toMatchObject({ status: "down", reason: "gone" });
    for (const _ of [1, 2]) condition.up();
    expect(condition.current).toMatchObject({ status: "up", reason: null });
    expect(result).toEqual(["up", "down", "up"]);
    expect(logged).toEqual(["the database is away; trying to reach it until it answers", "the database is back"]);
  });

  test("a refused further connection is logged once until one succeeds", () => {
    const { told: result, logged, condition } = keeper();
    condition.up();
    for (const _ of [1, 2]) condition.exhausted(new Error("too many"));
    condition.up();
    condition.exhausted(new Error("too many"));
    expect(logged).toHaveLength(2);
    expect(result).toEqual(["up"]);
  });
});
