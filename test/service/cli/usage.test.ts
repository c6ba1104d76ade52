import { existsSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { useFolder } from "../../fixture.ts";
import { SECRET } from "../../secret.ts";
import { runCommandWith, runWithoutDatabase, startCommand } from "./run-command.ts";

const folder = useFolder("content-service-usage-");

describe("a mistyped DATA_DIR", () => {
  test.each<[string, ...string[]]>([
    ["keys", "list"],
    ["provider", "list"],
    ["webhooks"],
    ["user", "add", "--email", "ann@example.org", "--name", "Ann"],
    ["policies"],
    ["why", "articles"],
    ["doctor"],
    ["types"],
    ["backup", "/dev/null"],
    ["migrate", "status"],
    ["sql", "select 1"],
  ])("is named in the error of %s %s, which creates nothing", async (name, ...words) => {
    const dataDir = join(folder, "mistyped");
    const { code, stdout, stderr } = await runWithoutDatabase(name, words, { DATA_DIR: dataDir });
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toContain(`There is no database in ${dataDir}.`);
    expect(existsSync(dataDir)).toBe(false);
  });
});

describe("a file that does not exist", () => {
  const run = (name: string, ...words: string[]) =>
    runWithoutDatabase(name, words, { DATA_DIR: join(folder, "none"), JWT_SECRET: SECRET });

  test.each([["restore"], ["restore", "--check"]])("is named by %s %s, which creates no database", async (...words) => {
    const [name, ...options] = words as [string];
    const { code, stdout, stderr } = await run(name, ...options, "none.gz");
    expect([code, stdout, stderr]).toEqual([1, "", "File not found: none.gz.\n"]);
    expect(existsSync(join(folder, "none"))).toBe(false);
  });
});

test("a command ends without an error when the reader of its output has ended", async () => {
  const { stdout, stderr, exited } = startCommand("keys", [], { DATA_DIR: join(folder, "none"), JWT_SECRET: SECRET });
  stdout.destroy();
  const [printed, code] = await Promise.all([text(stderr), exited]);
  expect([code, printed]).toEqual([0, ""]);
});

describe("keys that do not exist yet", () => {
  const print = (settings: NodeJS.ProcessEnv) => runWithoutDatabase("keys", [], settings);

  test("are not created by printing them, whether the folder exists or not", async () => {
    for (const dataDir of [join(folder, "mistyped"), folder]) {
      const { code, stdout, stderr } = await print({ DATA_DIR: dataDir });
      expect([code, stdout]).toEqual([1, ""]);
      expect(stderr).toContain(`There are no keys in ${dataDir}. Start the service once to make them`);
      expect(existsSync(join(dataDir, "secrets.json"))).toBe(false);
    }
    expect(existsSync(join(folder, "mistyped"))).toBe(false);
  });

  test("are printed without a database if JWT_SECRET is set", async () => {
    const { code, stdout } = await print({ DATA_DIR: join(folder, "mistyped"), JWT_SECRET: SECRET });
    expect([code, stdout]).toEqual([0, expect.stringContaining("anon key")]);
    expect(existsSync(join(folder, "mistyped"))).toBe(false);
  });
});

describe("the service itself", () => {
  test.each<[program: string, ...words: string[]]>([
    ["../../server", "--port", "80"],
    ["../../server", "--dev", "--port"],
    ["content-service", "start", "--port"],
  ])("does not start with unknown arguments: %s %s %s", async (program, ...words) => {
    const { code, stdout, stderr } = await runCommandWith(program, words, { DATA_DIR: join(folder, "none") });
    expect([code, stdout]).toEqual([2, ""]);
    const usage = words.includes("--dev") ? "npm run dev" : program === "content-service" ? "start" : "npm start";
    expect(stderr).toMatch(new RegExp(`${usage} takes no arguments.*\\n\\nUnknown option --port\\.\\n$`));
    expect(existsSync(join(folder, "none"))).toBe(false);
  });
});

describe("a usage error", () => {
  test.each<[words: string[], error: string]>([
    [["keys", "--xml"], "Unknown option --xml."],
    [["keys", "--secrt"], "Unknown option --secrt; did you mean --secret?"],
    [["types", "--outpt", "file"], "Unknown option --outpt; did you mean --output?"],
    [["user"], "Specify an action: add, import, disable, enable, role."],
    [["provider"], "Specify an action: add, list, remove, enable, disable."],
    [["webhooks", "send"], 'npm run webhooks has no action "send".'],
    [["webhooks", "replai"], 'npm run webhooks has no action "replai"; did you mean replay?'],
    [["why"], "Specify one request, in quotes."],
    [["migrate", "--fail"], "Unknown option --fail."],
  ])("of %j prints a short usage, and the error as the last line", async ([name, ...words], error) => {
    const { code, stderr } = await runWithoutDatabase(name!, words, { DATA_DIR: join(folder, "none") });
    const lines = stderr.trimEnd().split("\n");
    expect([code, lines.at(-1), lines.at(-2)]).toEqual([2, error, ""]);
    const usage = lines.slice(0, -2);
    expect(usage[0]).toMatch(new RegExp(`^npm run (--silent )?${name}`));
    expect(usage.length).toBeLessThanOrEqual(10);
  });
});
