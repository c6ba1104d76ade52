import { randomUUID } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { makeFindApiKey } from "../../../accounts/identity/api-key-lookup.ts";
import { claimsOf, from, openAccounts, PASSWORD } from "../../accounts/open-accounts.ts";
import { cloneDatabase } from "../../database.ts";
import { useFixture } from "../../fixture.ts";
import { type CommandResult, runCommand } from "./run-command.ts";

const opened = useFixture(openAccounts);

function run(line: string, database: { url: string; ownerUrl: string } = opened.database): Promise<CommandResult> {
  const [name, ...words] = line.split(" ");
  return runCommand(name!, words, database);
}

async function roleOf(username: string, password: string): Promise<unknown> {
  const { accounts } = opened;
  const { accessToken } = await accounts.login({ username, password }, from(), accounts.tokens.open);
  return claimsOf(accessToken).role;
}

describe("npm run user", () => {
  test("adds an administrator with a password that it generates and prints", async () => {
    const { stdout } = await run("user add --email boss@example.org --name Boss --admin");
    expect(stdout).toContain("Created administrator 1 with the e-mail address boss@example.org");
    expect(await roleOf("boss@example.org", /^password: (.*)$/m.exec(stdout)![1]!)).toBe("admin");
  });

  test("adds a user with a given password, which it does not print, and disables, enables and promotes the user", async () => {
    const { stdout } = await run(`user add --email ada@example.org --name Ada --password ${PASSWORD}`);
    expect(stdout).not.toContain(PASSWORD);
    expect(await roleOf("ada@example.org", PASSWORD)).toBe("authenticated");
    await run("user disable ada@example.org");
    await expect(roleOf("ada@example.org", PASSWORD)).rejects.toMatchObject({ code: "ACCOUNT_DISABLED" });
    await run("user enable ada@example.org");
    await run("user role ada@example.org admin");
    expect(await roleOf("ada@example.org", PASSWORD)).toBe("admin");
  });

  test("imports accounts with their passwords from a file, once", async () => {
    const folder = await mkdtemp(join(tmpdir(), "import-"));
    try {
      const file = join(folder, "users.json");
      const hash = "$2b$04$EGdrhbKUv8Oc9vGiXX0HQOxSg445d458Muh7DAHskb6QbtCvdxcie";
      const user = { id: randomUUID(), email: "dora@example.org", encrypted_password: hash };
      const identity = { user_id: user.id, provider: "acme", provider_id: "4711" };
      await writeFile(file, JSON.stringify({ users: [user], identities: [identity] }));
      const { stdout, code } = await run(`user import ${file}`);
      expect(code).toBe(0);
      expect(stdout).toContain("users: 1 imported\nidentities: 1 no provider\nThere is no provider acme: add it");
      expect(await roleOf("dora@example.org", "correctbatteryhorsestapler")).toBe("authenticated");
      expect((await run(`user import ${file}`)).stdout).toContain("users: 1 known");
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  test.each([
    ["user import", 2, "Specify a file."],
    ["user import package.json", 1, "The JSON is no list of users"],
    ["user", 2, "Specify an action"],
    ["user add --email x@example.org", 2, "--name"],
    ["user add --mail x@example.org", 2, "Unknown option --mail; did you mean --email?"],
    ["user add --email x@example.org --name X --password easy", 1, "Use at least 8 characters."],
    ["user add --email boss@example.org --name Boss", 1, "already has an account"],
    ["user disable", 2, "Specify a user"],
    ["user disable nobody", 1, 'User "nobody" not found.'],
    ["user role boss@example.org postgres", 1, "no role of that name"],
  ])("%s fails with a message and exit code %i", async (line, exitCode, words) => {
    const { stderr, code } = await run(line);
    expect(code).toBe(exitCode);
    expect(stderr).toContain(words);
    expect(stderr).not.toMatch(/^ +at /m);
  });

  test("names the missing setting if the login is not the owner", async () => {
    const { url } = opened.database;
    expect(await run("user disable ada@example.org", { url, ownerUrl: url })).toMatchObject({
      code: 1,
      stderr: "permission denied for schema auth: set OWNER_DATABASE_URL to the same database as its owner.\n",
    });
  });

  test("explains what to do about a database that is not migrated", async () => {
    const empty = await cloneDatabase("empty");
    expect((await run("user disable nobody", empty)).stderr).toContain("npm run migrate");
    await empty.drop();
  });
});

describe("npm run keys", () => {
  test("creates a key, lists it and revokes it", async () => {
    const created = await run("keys create --role service_role --name backup --expires 2999-12-31");
    const key = /^key_[\w-]{43}$/m.exec(created.stdout)![0];
    const id = /^Key (\d+)/.exec(created.stdout)![1];
    const find = () => makeFindApiKey({ asOwner: opened.asOwner, log: { warn: () => {} } })(key);
    expect(await find()).toMatchObject({ role: "service_role" });

    const { stdout } = await run("keys list");
    expect(JSON.parse((await run("keys list --json")).stdout)).toContainEqual(
      expect.objectContaining({ name: "backup" }),
    );
    expect(stdout).toMatch(
      /^id +begins +role +owner +name +state +expires +lastUsed\n1 +key_.* +service_role +backup +good +2999-12-31T/m,
    );
    expect(stdout).toContain(key.slice(0, 12));
    expect(stdout).not.toContain(key);

    await run(`keys revoke ${id}`);
    expect(await find()).toBeNull();
    expect((await run("keys list")).stdout).toContain("revoked");
  });

  test("prints one key alone, as both are printed with their names", async () => {
    const both = (await run("keys")).stdout.split("\n");
    expect((await run("keys --anon")).stdout).toBe(`${both[1]}\n`);
    expect((await run("keys --service-role")).stdout).toBe(`${both[4]}\n`);
    expect((await run("keys --publishable")).stdout).toMatch(/^sb_publishable_[\w-]{22}_[\w-]{8}\n$/);
    expect((await run("keys --secret")).stdout).toMatch(/^sb_secret_[\w-]{22}_[\w-]{8}\n$/);
    expect(JSON.parse((await run("keys --json")).stdout)).toEqual({
      anon: both[1],
      "service-role": both[4],
      publishable: expect.stringMatching(/^sb_publishable_/),
      secret: expect.stringMatching(/^sb_secret_/),
    });
  });

  test.each([
    ["keys --anon --service-role", 2, "--anon, --service-role, --publishable, --secret"],
    ["keys list --anon", 2, "take no action"],
    ["keys create", 2, "--role"],
    ["keys create --role postgres", 1, "no role of that name"],
    ["keys create --role anon --owner x", 2, '"x" is not an id'],
    ["keys create --role anon --owner 999999", 1, "no user of that id"],
    ["keys create --role anon --expires tomorrow", 2, "2027-12-31"],
    ["keys create --role anon --expires 2027-02-30", 2, "2027-12-31"],
    ["keys create --role anon --expires 2001-01-01", 1, "in the future"],
    ["keys revoke 999999", 1, "no such key"],
    ["keys list all", 2, 'Unexpected argument "all".'],
    ["keys forget", 2, 'has no action "forget"'],
  ])("%s fails with a message and exit code %i", async (line, exitCode, words) => {
    const { stderr, code } = await run(line);
    expect(code).toBe(exitCode);
    expect(stderr).toContain(words);
    expect(stderr).not.toMatch(/^ +at /m);
  });
});
