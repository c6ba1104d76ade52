import { describe, expect, test } from "vitest";
import { countFreeConnections, divideConnections, idealSizes } from "../../../postgres/database/pool-sizes.ts";
import { cloneDatabase } from "../../database.ts";

describe("pool sizes", () => {
  test("few connections read, two for each processor, and many write", () => {
    expect(idealSizes(1)).toEqual({ read: 4, write: 16, slow: 6, stream: 3 });
    expect(idealSizes(4).read).toBe(8);
    expect(idealSizes(64).read).toBe(16);
  });

  test("divide the maximum, and a surplus goes to the write pool", () => {
    const ideal = idealSizes(2);
    expect(divideConnections(29, ideal)).toEqual(ideal);
    expect(divideConnections(41.5, ideal)).toEqual({ ...ideal, write: 28 });
    expect(divideConnections(28, ideal)).toEqual({ read: 4, write: 15, slow: 6, stream: 3 });
    expect(divideConnections(28.9, idealSizes(4))).toEqual({ read: 7, write: 14, slow: 5, stream: 2 });
    expect(divideConnections(14, ideal)).toEqual({ read: 2, write: 7, slow: 3, stream: 2 });
    expect(divideConnections(14, idealSizes(4))).toEqual({ read: 3, write: 7, slow: 2, stream: 2 });
    expect(divideConnections(7, ideal)).toEqual({ read: 1, write: 3, slow: 2, stream: 1 });
    expect(divideConnections(0, ideal)).toEqual({ read: 1, write: 1, slow: 1, stream: 1 });
  });

  test("respect the limits of the server, the database and the role", async () => {
    const database = await cloneDatabase("empty");
    const free = await countFreeConnections(database.url);
    expect(free).toBeGreaterThan(50);
    expect(free).toBeLessThan(300);
    await database.drop();
  });
});
