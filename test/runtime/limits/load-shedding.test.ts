import { describe, expect, test } from "vitest";
import { LoadShedder } from "../../../runtime/limits/load-shedding.ts";

/** A shedder of an event loop whose samples each come so late, for three seconds, in which this process worked for a share of the time. */
function makeLate(lateMs: number, share = 1) {
  let now = 0;
  let worked = 0;
  const shedder = new LoadShedder({ wall: () => now, processor: () => worked });
  const pass = (late: number, until = now + 3_000) => {
    while (now < until) {
      now += 50 + late;
      worked += (50 + late) * share;
      shedder.sample();
    }
  };
  pass(lateMs);
  const admitted = (caller: string, isStranger: boolean) =>
    Array.from({ length: 100 }, () => shedder.admits(caller, isStranger)).filter(Boolean).length;
  return { shedder, pass, admitted };
}

describe("load shedding", () => {
  test("refuses nobody while the event loop is on time, or after a single block", () => {
    const { admitted, pass } = makeLate(0);
    expect(admitted("address 192.0.2.1", true)).toBe(100);
    pass(120, 3_001);
    expect(admitted("address 192.0.2.1", true)).toBe(100);
  });

  test.each([
    [300, 10, 100],
    [800, 2, 100],
    [2_000, 1, 20],
  ])(
    "while it is %i ms late, admits %i requests per second of an address and %i of a user",
    (late, ofStranger, ofUser) => {
      const { admitted } = makeLate(late);
      expect(admitted("address 192.0.2.1", true)).toBe(ofStranger);
      expect(admitted("address 192.0.2.2", true)).toBe(ofStranger);
      expect(admitted("user 1", false)).toBe(ofUser);
    },
  );

  test.each([300, 800, 2_000])("refuses nobody while it is %i ms late because others have the processors", (late) => {
    const { admitted } = makeLate(late, 200 / (50 + late));
    expect(admitted("address 192.0.2.1", true)).toBe(100);
  });

  test("counts of a delay what this process worked in it", () => {
    const { shedder } = makeLate(2_000, 0.2);
    expect(shedder.lateness).toBeGreaterThan(350);
    expect(shedder.lateness).toBeLessThan(420);
  });

  test("admits as many again in the next second, and all when the event loop has recovered", () => {
    const { admitted, pass } = makeLate(300);
    expect(admitted("address 192.0.2.1", true)).toBe(10);
    expect(admitted("address 192.0.2.1", true)).toBe(0);
    pass(300);
    expect(admitted("address 192.0.2.1", true)).toBe(10);
    pass(0);
    expect(admitted("address 192.0.2.1", true)).toBe(100);
  });
});
