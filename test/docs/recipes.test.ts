import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import jwt from "jsonwebtoken";
import { beforeAll, describe, expect, test } from "vitest";
import { useClient, useDatabase } from "../database.ts";
import { useFolder } from "../fixture.ts";
import { REPOSITORY } from "../repository.ts";
import { SECRET } from "../secret.ts";
import { useService } from "../serve.ts";
import { runCommand } from "../service/cli/run-command.ts";
import { until } from "../until.ts";
import { ADDRESS } from "./five-minutes.ts";

const ROWS = 45_000;
const keyOf = (role: string) => jwt.sign({ role }, SECRET);

/** Replaces the extension, and refuses the first attempt. */
const MAIL_SERVER = `
  create table content_service.requests (content text not null);
  alter table content_service.requests enable row level security;
  create sequence content_service.attempts;
  create function extensions.http_post(uri text, content text, content_type text, out status integer)
  language plpgsql security definer set search_path = '' as $$
  begin
    status := case when nextval('content_service.attempts') = 1 then 503 else 202 end;
    if status = 202 then insert into content_service.requests values (content); end if;
  end $$`;

let blocks: { language: string; file: string | undefined; text: string }[];

const folder = useFolder("content-service-recipes-");
const database = useDatabase();
const owner = useClient(database.ownerUrl);
beforeAll(async () => {
  const page = await readFile(join(REPOSITORY, "docs/recipes.md"), "utf8");
  blocks = [...page.matchAll(/^```(\w+)(?: (\S+))?\n(.*?)^```$/gms)].map(([, language, file, text]) => ({
    language: language!,
    file,
    text: text!,
  }));
  await owner.query(MAIL_SERVER);
  for (const { language, file, text } of blocks) if (language === "sql" && !file) await owner.query(text);
  for (const { file, text } of blocks) if (file) await writeFile(join(folder, file), text);
});
const service = useService({ database });

const run = (script: string, environment: Readonly<Record<string, string>> = {}) =>
  promisify(execFile)("bash", ["-c", script], { cwd: folder, env: { PATH: process.env.PATH, ...environment } });
const script = (word: string) =>
  blocks.find(({ language, text }) => language === "sh" && text.includes(word))!.text.replaceAll(ADDRESS, service.url);

describe("the recipes", () => {
  test("upload a file in parts, and a second time without inserting rows twice", async () => {
    const [generate] = script("upload.mjs").replace("1000000", String(ROWS)).split("\n");
    await run(generate!);
    const upload = () =>
      run(`"${process.execPath}" upload.mjs readings.csv readings`, {
        SERVICE_URL: service.url,
        SERVICE_KEY: keyOf("service_role"),
      });
    for (let time = 0; time < 2; time += 1) {
      expect((await upload()).stdout).toMatch(new RegExp(`^${ROWS} rows in `));
      const { rows } = await owner.query("select count(*)::int, count(distinct value)::int as values from readings");
      expect(rows).toEqual([{ count: ROWS, values: ROWS }]);
    }
  });

  test("create, refuse and read a row by a uuid that the client chose", async () => {
    const [, ...commands] = script("crypto.randomUUID").split("\n");
    const { stdout } = await run(commands.join("\n"), { KEY: keyOf("anon") });
    expect(stdout).toMatch(/^201\n.*"23505".*409\n\[\{"id":"[\da-f-]{36}".*\}\]\{"id":"[\da-f-]{36}"/);
  });

  test("write related rows at once, by a nested insert, a batch and GraphQL", async () => {
    const [, ...commands] = script("nested=insert").split("\n");
    const { stdout } = await run(commands.join("\n"), { KEY: keyOf("anon") });
    expect(stdout).toMatch(/^\[\{"customer":"Ada","invoice_lines":\[\{"text":"Tea"\},\s*\{"text":"Cup"\}\]\}\]/);
    expect([...stdout.matchAll(/"status":(\d+)/g)].map(([, status]) => status)).toEqual(["201", "201", "204"]);
    expect(stdout).toContain('{"data":{"createInvoice":{"customer":"Eve","invoiceLines":[{"text":"Mug"}]}}}');
    const { rows } = await owner.query(
      "select customer, is_sent, count(*)::int as lines from invoices join invoice_lines on invoice_id = invoices.id group by invoices.id order by 1",
    );
    expect(rows).toEqual([
      { customer: "Ada", is_sent: false, lines: 2 },
      { customer: "Bob", is_sent: true, lines: 1 },
      { customer: "Eve", is_sent: false, lines: 1 },
    ]);
  });

  test("send an e-mail after a sign-up, and again if the mail server is unavailable", async () => {
    const email = "ada@example.org";
    const body = JSON.stringify({ name: "Ada", email, password: "Tangerine-Boat-7" });
    const headers = { "Content-Type": "application/json" };
    expect((await fetch(`${service.url}/auth/register`, { method: "POST", headers, body })).status).toBe(201);
    const mails = async () => (await owner.query("select content::json from content_service.requests")).rows;
    await until(async () => (await mails()).length > 0);
    expect(await mails()).toEqual([{ content: { to: email, template: "welcome" } }]);
  });

  test("add Google as a provider, which has a button on the sign-in page", async () => {
    await writeFile(join(folder, "google.secret"), "secret");
    const [, command] = script("provider -- add").match(/npm run provider -- ([^\n]*\\\n[^\n]*)/)!;
    const words = command!.replace(/\\\n/g, " ").replace("google.secret", join(folder, "google.secret")).split(/ +/);
    await runCommand("provider", words, database);
    expect(await (await fetch(`${service.url}/auth/sign-in`)).text()).toContain("Sign in with Google");
  });
});
