import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";

// Node documents neither its messages between a primary and its workers nor a way to learn which connections were passed.
test("another worker answers a connection that was passed to a worker which exits without taking it", async () => {
  const program = join(import.meta.dirname, "passing-primary.ts");
  const { stdout } = await promisify(execFile)(process.execPath, [program]);
  expect(stdout).toBe("rescued\n");
});
