import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { toReadableLine } from "../../../runtime/log/readable-line.ts";

const TIME = new Date(2026, 0, 2, 3, 4, 5).toISOString();
const lineOf = (record: object) => toReadableLine(JSON.stringify({ level: "info", time: TIME, ...record }));

test("a request is its method, path, status and duration, without its id", () => {
  const request = { request: "3ac8e682", method: "GET", path: "/rest/v1/films", status: 200, milliseconds: 2.1 };
  expect(lineOf({ ...request, msg: "request" })).toBe("03:04:05 GET /rest/v1/films 200 in 2.1 ms\n");
});

test("other lines are the message and their fields, with the level where it warns", () => {
  expect(lineOf({ msg: "the database is back", awayMs: 12 })).toBe("03:04:05 the database is back awayMs=12\n");
  expect(lineOf({ level: "warn", msg: "slow", pools: { read: 1 } })).toBe('03:04:05 warn: slow pools={"read":1}\n');
});

test("an error follows on lines of its own", () => {
  const err = { type: "Error", message: "no", stack: "Error: no\n    at here" };
  expect(lineOf({ level: "error", msg: "reload failed", err })).toBe(
    "03:04:05 error: reload failed\n  Error: no\n      at here\n",
  );
  expect(lineOf({ msg: "failed", err: { message: "no" } })).toBe("03:04:05 failed\n  no\n");
});

test("control characters of clients are shown, so that they do not control the terminal", () => {
  const request = { method: "GET", path: "/\u001b[2J", status: 200, milliseconds: 1, agent: "a\u0007b\nc" };
  expect(lineOf({ ...request, msg: "request" })).toBe("03:04:05 GET /\\x1b[2J 200 in 1 ms agent=a\\x07b\\x0ac\n");
  expect(lineOf({ msg: "no\u009bm", err: { message: "a\u001bc\nb" } })).toBe("03:04:05 no\\x9bm\n  a\\x1bc\n  b\n");
});

const PROGRAM = `
  const { makeLogger } = await import("${import.meta.dirname}/../../../runtime/log/log.ts");
  makeLogger({ logLevel: "info" }).warn({ count: 2 }, "lines");`;

test("a terminal gets readable lines in colour, without colour on request, and a pipe gets JSON", () => {
  const command = `${process.execPath} --input-type=module -e '${PROGRAM}'`;
  const atTerminal = (NO_COLOR?: string) =>
    execFileSync("script", ["-qec", command, "/dev/null"], {
      encoding: "utf8",
      env: { PATH: process.env.PATH, TERM: "xterm-256color", ...(NO_COLOR !== undefined && { NO_COLOR }) },
    });
  expect(atTerminal()).toContain("\u001b[33mwarn:\u001b[39m lines \u001b[2mcount=2\u001b[22m");
  expect(atTerminal("1")).toMatch(/^\d\d:\d\d:\d\d warn: lines count=2\r?\n$/);
  const piped = execFileSync("sh", ["-c", `${command} 2>&1`], { encoding: "utf8" });
  expect(JSON.parse(piped)).toMatchObject({ level: "warn", count: 2, msg: "lines" });
});
