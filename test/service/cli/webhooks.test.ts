import { beforeAll, describe, expect, test } from "vitest";
import { useClient, useDatabase } from "../../database.ts";
import { useFixture } from "../../fixture.ts";
import { startReceiver, verify } from "../../jobs/webhooks/receiver.ts";
import { runCommand } from "./run-command.ts";

const receiver = useFixture(startReceiver);
const database = useDatabase({
  template: "platform",
  sql: "create table public.orders (id int primary key, total int)",
});
const client = useClient(database.ownerUrl);
beforeAll(async () => {
  for (const name of ["one", "two"]) {
    await client.query(
      "insert into api.webhooks (name, table_name, url, role) values ($1, 'public.orders', $2, 'service_role')",
      [name, receiver.url],
    );
  }
  await client.query("insert into public.orders values (1, 10), (2, 20), (3, 30)");
  await client.query(`
    update content_service.webhook_deliveries set state = 'dead', attempts = 20, last_error = 'The response has the status 500'
    where key < '3' and webhook_id = (select id from api.webhooks where name = 'one')`);
  await client.query(
    "insert into content_service.webhook_leases (webhook_id, expires_at, delivered_at) select id, '-infinity', now() from api.webhooks",
  );
});

const run = (line: string, settings: NodeJS.ProcessEnv = { WEBHOOK_NETWORK: "loopback" }) =>
  runCommand("webhooks", line.split(" ").filter(Boolean), database, settings);

async function secretOf(name: string): Promise<string> {
  return (await client.query("select secret from api.webhooks where name = $1", [name])).rows[0].secret;
}

describe("npm run webhooks", () => {
  test("lists webhooks with their state, what waits, what is dead, and the last error", async () => {
    await client.query(
      "update api.webhooks set disabled_because = 'The response has the status 410' where name = 'two'",
    );
    const { code, stdout, stderr } = await run("");
    expect([code, stderr]).toEqual([0, ""]);
    const [header, one, two] = stdout
      .trim()
      .split("\n")
      .map((line) => line.split(/ {3,}/));
    expect(header!.slice(0, 8)).toEqual(["name", "table", "events", "url", "state", "waiting", "oldest", "dead"]);
    expect(header!.slice(8)).toEqual(["last delivery", "last error"]);
    const common = ["public.orders", "INSERT,UPDATE,DELETE", receiver.url];
    const time = expect.stringMatching(/^\d{4}-.*Z$/);
    expect(one).toEqual(["one", ...common, "enabled", "1", time, "2", time, "The response has the status 500"]);
    expect(two).toEqual(["two", ...common, "stopped", "3", time, "0", time, "The response has the status 410"]);
    expect(stdout).not.toContain("whsec_");
    await client.query("update api.webhooks set is_enabled = true");
    expect((await run("list")).stdout).not.toContain("stopped");
  });

  test("lists dead deliveries, of one webhook or of all", async () => {
    const { stdout } = await run("dead one");
    const [, ...lines] = stdout
      .trim()
      .split("\n")
      .map((line) => line.split(/ {3,}/));
    expect(lines.map(([, ...cells]) => cells)).toEqual(
      ["1", "2"].map((key) => ["one", "INSERT", key, expect.any(String), "20", "The response has the status 500"]),
    );
    expect((await run("dead")).stdout).toBe(stdout);
    expect((await run("dead two")).stdout).toBe("No dead deliveries found.\n");
  });

  test("replays dead deliveries of a time, and discards others", async () => {
    expect((await run("replay one --until 2020-01-01")).stdout).toBe("0 deliveries are sent again.\n");
    await client.query(
      "update content_service.webhook_deliveries set recorded_at = '2020-05-05' where state = 'dead' and key = '1'",
    );
    expect((await run("replay one --since 2020-01-01 --until 2021-01-01")).stdout).toBe(
      "1 deliveries are sent again.\n",
    );
    expect((await run("discard one")).stdout).toBe("1 deliveries were deleted.\n");
    expect((await run("dead one")).stdout).toBe("No dead deliveries found.\n");
    const { rows } = await client.query(
      "select key, state, attempts from content_service.webhook_deliveries where webhook_id = (select id from api.webhooks where name = 'one') order by id",
    );
    expect(rows).toEqual([
      { key: "1", state: "pending", attempts: 0 },
      { key: "3", state: "pending", attempts: 0 },
    ]);
  });

  test("sends a test delivery with a signature, and exits with 1 if that fails", async () => {
    const sent = await run("test one");
    expect([sent.code, sent.stderr]).toEqual([0, ""]);
    const request = receiver.requests.at(-1)!;
    expect(sent.stdout).toBe(`${receiver.url} has received the test delivery ${request.id}.\n`);
    expect(verify(request, await secretOf("one"))).toMatchObject({
      type: "TEST",
      schema: "public",
      table: "orders",
      record: null,
      old_record: null,
    });

    receiver.respond = (response) => void response.writeHead(500).end();
    const failed = await run("test one");
    expect([failed.code, failed.stdout]).toEqual([1, ""]);
    expect(failed.stderr).toBe(`The test delivery to ${receiver.url} failed: The response has the status 500.\n`);
    const refused = await run("test one", { WEBHOOK_NETWORK: "public" });
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("not an https URL")]);
  });

  test("rotates a secret in two steps", async () => {
    const former = await secretOf("two");
    const begun = await run("rotate two");
    const [, added] = begun.stdout.trim().split("\n");
    expect(added).toMatch(/^whsec_/);
    expect(await secretOf("two")).toBe(`${added} ${former}`);
    expect(await run("rotate two")).toMatchObject({ code: 1, stderr: expect.stringContaining("rotate two --finish") });
    expect((await run("rotate two --finish")).code).toBe(0);
    expect(await secretOf("two")).toBe(added);
    expect(await run("rotate two --finish")).toMatchObject({ code: 1, stderr: expect.stringContaining("one secret") });
  });

  test.each<[string, number, string]>([
    ["dead three", 1, 'There is no webhook "three".'],
    ["test three", 1, 'There is no webhook "three".'],
    ["replay one --since yesterday-ish", 2, "invalid input syntax"],
    ["replay", 2, "Specify the name of a webhook"],
    ["list one", 2, 'Unexpected argument "one".'],
    ["send one", 2, 'npm run webhooks has no action "send".'],
  ])("%s exits with %i: %s", async (line, code, message) => {
    expect(await run(line)).toMatchObject({ code, stdout: "", stderr: expect.stringContaining(message) });
  });
});
