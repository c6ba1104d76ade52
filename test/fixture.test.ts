import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { withClient } from "../postgres/client/with-client.ts";
import { type TestDatabase, urlOf, useClient, useDatabase } from "./database.ts";
import { useFixture, useFolder } from "./fixture.ts";
import { REPOSITORY } from "./repository.ts";
import { useService } from "./serve.ts";

const runProgram = promisify(execFile);

class Door {
  #isOpen = true;
  readonly name: string;
  constructor(name: string) {
    this.name = name;
    steps.push(`open ${name}`);
  }
  get isOpen(): boolean {
    return this.#isOpen;
  }
  close(): void {
    this.#isOpen = false;
    steps.push(`close ${this.name}`);
  }
}

const steps: string[] = [];
const before = useFixture(() => new Door("outer"));
const readWhenLoaded = (() => {
  try {
    return before.name;
  } catch (error) {
    return (error as Error).message;
  }
})();

describe("fixtures", () => {
  const first = useFixture(async () => new Door("first"));
  beforeAll(() => void steps.push(`hook after ${first.name}`));
  const second = useFixture(
    () => ({ of: first.name }),
    () => steps.push("close second"),
  );

  test("are open in tests, and in hooks that are declared after them", () => {
    expect([before.isOpen, first.isOpen, second.of]).toEqual([true, true, "first"]);
    expect(steps).toEqual(["open outer", "open first", "hook after first"]);
  });

  test("stand for what was opened", () => {
    expect({ ...second }).toEqual({ of: "first" });
    expect(second).toEqual({ of: "first" });
    expect(first).toBeInstanceOf(Door);
    expect("close" in first).toBe(true);
    Object.assign(second, { added: 1 });
    expect(second).toEqual({ of: "first", added: 1 });
    const spy = vi.spyOn(first, "close").mockReturnValue();
    first.close();
    expect(first.close).toHaveBeenCalledOnce();
    spy.mockRestore();
    expect(first.isOpen).toBe(true);
  });
});

test("fixtures of a describe are closed after it, the last one first", () => {
  expect(steps.slice(3)).toEqual(["close second", "close first"]);
  expect(before.isOpen).toBe(true);
});

test("a fixture is closed, although a later one cannot be opened and a hook fails", async () => {
  // The folder is in the repository, so that vitest is found.
  const root = await mkdtemp(join(REPOSITORY, "node_modules/.fixtures-"));
  const fixtures = JSON.stringify(join(REPOSITORY, "test/fixture.ts"));
  await writeFile(
    join(root, "failing.test.ts"),
    `import { afterAll, test } from "vitest";
    import { useFixture } from ${fixtures};
    useFixture(() => ({ close: () => console.log("closed the first") }));
    useFixture(() => { throw new Error("no second"); });
    afterAll(() => { throw new Error("no hook"); });
    useFixture(() => ({ close: () => console.log("closed the third") }));
    test("runs nothing", () => {});`,
  );
  await writeFile(join(root, "vitest.config.ts"), 'export default { test: { include: ["*.test.ts"], exclude: [] } }');
  const vitest = join(REPOSITORY, "node_modules/vitest/vitest.mjs");
  const { stdout, stderr } = await runProgram(process.execPath, [vitest, "run", "--root", root]).catch(
    (failed) => failed,
  );
  await rm(root, { recursive: true });
  expect(stderr).toContain("no second");
  expect(stderr).toContain("no hook");
  expect(stdout).toContain("closed the first");
  expect(stdout).not.toContain("closed the third");
});

test("a fixture cannot be read while a file is loaded", () => {
  expect(readWhenLoaded).toBe("A fixture is opened before the first test: only tests and later hooks can read it.");
});

describe("a service of a describe", () => {
  const sql = "create table public.notes (id int primary key); grant select on public.notes to anon";
  const service = useService({ template: "empty", sql, settings: { REST_REQUIRE_APIKEY: "false" } });

  test("serves a database of its own", async () => {
    expect(await (await fetch(`${service.url}/rest/v1/notes`)).json()).toEqual([]);
    expect(steps).not.toContain("close outer");
  });
});

const left: { database?: TestDatabase; folder?: string } = {};

describe("a database and a folder of a describe", () => {
  const database = useDatabase({ template: "empty", sql: "create table public.notes (id int)" });
  const owner = useClient(database.ownerUrl);
  const folder = useFolder("fixture-");
  const service = useService({ database, settings: () => ({ MAIL_DIR: folder }) });
  Object.assign(left, { database, folder });

  test("are there for it", async () => {
    expect((await owner.query("select from public.notes")).rows).toEqual([]);
    expect(existsSync(folder)).toBe(true);
    expect((await fetch(`${service.url}/health`)).status).toBe(200);
  });
});

test("and are removed after it", async () => {
  expect(existsSync(left.folder!)).toBe(false);
  const findIt = "select from pg_database where datname = $1";
  const found = await withClient(urlOf("postgres", "postgres"), (client) =>
    client.query(findIt, [left.database!.name]),
  );
  expect(found.rowCount).toBe(0);
});
