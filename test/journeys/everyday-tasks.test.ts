import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@supabase/supabase-js";
import jwt from "jsonwebtoken";
import { beforeAll, describe, expect, test } from "vitest";
import { freePort } from "../../bench/measuring/free-port.ts";
import { withClient } from "../../postgres/client/with-client.ts";
import { useDatabase } from "../database.ts";
import { inClone } from "../docs/in-clone.ts";
import { openTerminal } from "../docs/terminal.ts";
import { useFolder } from "../fixture.ts";
import { REPOSITORY } from "../repository.ts";
import { SECRET } from "../secret.ts";
import { useService } from "../serve.ts";
import { runCommand } from "../service/cli/run-command.ts";
import { until } from "../until.ts";

const ADA = { email: "ada@example.org", password: "Tangerine-Boat-7" };
const NOTES = `
  create table public.notes (
    id bigint generated always as identity primary key,
    owner_id bigint not null default auth.uid(),
    words text not null
  );
  alter table public.notes enable row level security;
  create policy own on public.notes to authenticated using (owner_id = (select auth.uid())) with check (owner_id = (select auth.uid()));
  grant select, insert (words), update (words), delete on public.notes to authenticated;
  create table public.readings (id bigint generated always as identity primary key, taken_at timestamptz not null);
  insert into public.readings (taken_at) values (now()), (now() - interval '1 year');`;

/** The blocks of a page in this language, in their order. */
async function blocksOf(page: string, language: string): Promise<readonly string[]> {
  const text = await readFile(join(REPOSITORY, "docs", page), "utf8");
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\\b[^\\n]*\\n(.*?)^\`\`\`$`, "gms"))].map(
    ([, block]) => block!,
  );
}

const clientOf = (role: string) =>
  createClient(service.url, jwt.sign({ role }, SECRET), { auth: { persistSession: false } });

async function signInAda() {
  const client = clientOf("anon");
  expect((await client.auth.signInWithPassword(ADA)).error).toBeNull();
  return client;
}

/** Returns the link of an e-mail, once it was sent. */
async function linkTo(email: string, subject: string): Promise<string> {
  let link: string | undefined;
  await until(async () => {
    const headers = { Authorization: `Bearer ${jwt.sign({ role: "admin" }, SECRET)}` };
    const { mails } = (await (await fetch(`${service.url}/admin/v1/mails`, { headers })).json()) as {
      mails: { to: string; subject: string; text: string }[];
    };
    const mail = mails.find((each) => each.to === email && each.subject.startsWith(subject));
    link = /^https?:\S+$/m.exec(mail?.text ?? "")?.[0];
    return link !== undefined;
  });
  return link!;
}

const mailDir = useFolder("mail-");
const database = useDatabase();
const sql = (text: string) => withClient(database.ownerUrl, (client) => client.query(text));
beforeAll(() => sql(NOTES));
const service = useService({
  database,
  settings: { MAIL_DIR: mailDir, STUDIO: "administrators", WEBHOOK_NETWORK: "loopback" },
});

// Tables with own rows, OpenID Connect, nginx and Supabase projects need a browser, a provider, a proxy or a folder: they are followed in
// test/studio/first-row.test.ts, test/docs/federation.test.ts, test/service/processes/nginx.test.ts and test/journeys/supabase-project.test.ts.
describe("an everyday task, as its page says:", () => {
  beforeAll(async () => {
    const created = await clientOf("service_role").auth.admin.createUser({ ...ADA, email_confirm: true });
    expect(created.error).toBeNull();
  });

  test("a magic link signs in", async () => {
    const { error } = await clientOf("anon").auth.signInWithOtp({
      email: ADA.email,
      options: { shouldCreateUser: false },
    });
    expect(error).toBeNull();
    const link = await linkTo(ADA.email, "Your sign-in link");
    const { headers } = await fetch(link, { redirect: "manual" });
    const session = new URLSearchParams(new URL(headers.get("location")!).hash.slice(1));
    const { data } = await clientOf("anon").auth.getUser(session.get("access_token")!);
    expect(data.user?.email).toBe(ADA.email);
  });

  test("a teammate is invited with a role, and chooses a password", async () => {
    const [invite] = (await blocksOf("sign-in.md", "sh")).filter((block) => block.includes("/admin/v1/invitations"));
    const variables = { URL: service.url, JSON: "Content-Type: application/json" };
    const terminal = openTerminal({ folder: REPOSITORY, environment: { ...inClone(database), ...variables } });
    try {
      expect((await terminal.run(invite!)).output).toMatch(/\n201\n$/);
    } finally {
      await terminal.close();
    }
    const link = await linkTo("eve@example.org", "Admin (admin@example.org) invites you to 127.0.0.1");
    expect(await (await fetch(link)).text()).toContain("eve@example.org");
    const password = "correct horse Battery 9";
    const accepted = await fetch(`${service.url}/auth/invitation`, {
      method: "POST",
      redirect: "manual",
      headers: { Origin: service.url },
      body: new URLSearchParams({ token: new URL(link).searchParams.get("token")!, password }),
    });
    expect(accepted.status).toBe(303);
    const { data } = await clientOf("anon").auth.signInWithPassword({ email: "eve@example.org", password });
    expect(data.user?.role).toBe("authenticated");
  });

  test("a user uploads an avatar, which everybody sees", async () => {
    const [create] = await blocksOf("files.md", "sql");
    await sql(create!);
    const [upload] = await blocksOf("files.md", "js");
    const supabase = await signInAda();
    const file = Buffer.from("\x89PNG\r\n\x1a\n");
    const run = new Function(
      "supabase",
      "file",
      `return (async () => { ${upload!.replace(/^avatars\.get/m, "return avatars.get")} })()`,
    );
    const address = (await run(supabase, file)) as string;
    expect(Buffer.from(await (await fetch(address)).arrayBuffer())).toEqual(file);
  });

  test("a nightly job deletes what is old", async () => {
    const [create] = await blocksOf("schedules.md", "sql");
    await sql(create!);
    await sql("select api.run_schedule('old readings')");
    await until(async () => {
      const { rows } = await sql("select status from api.schedule_runs where schedule = 'old readings'");
      return rows[0]?.status === "done";
    });
    expect((await sql("select from public.readings")).rowCount).toBe(1);
  });

  test("a webhook tells another program of a paid order", async () => {
    const port = await freePort();
    const [create] = await blocksOf("webhooks.md", "sh");
    const statements = /"\n(.*)"\n$/s.exec(create!)![1]!.replaceAll('\\"', '"').replace(":4000/", `:${port}/`);
    await sql(statements);
    const secret = (await sql("select secret from api.webhooks where name = 'paid'")).rows[0].secret as string;
    const [receiver] = await blocksOf("webhooks.md", "js");
    const folder = await mkdtemp(join(tmpdir(), "receiver-"));
    await writeFile(join(folder, "receiver.mjs"), receiver!.replace("listen(4000,", `listen(${port},`));
    const child = spawn(process.execPath, ["receiver.mjs"], { cwd: folder, env: { WEBHOOK_SECRET: secret } });
    let printed = "";
    child.stdout.on("data", (chunk) => {
      printed += chunk;
    });
    try {
      await sql("insert into orders (status, total) values ('paid', 12.50)");
      await until(() => printed !== "");
      expect(printed).toContain("status: 'paid'");
      const { stdout } = await runCommand("webhooks", ["test", "paid"], database, { WEBHOOK_NETWORK: "loopback" });
      expect(stdout).toContain("has received the test delivery");
    } finally {
      child.kill();
      await rm(folder, { recursive: true, force: true });
    }
  });

  test("a list stays up to date while somebody else writes", async () => {
    const [, source] = await blocksOf("guides/live-list.md", "js");
    const { watchList } = (await import(`data:text/javascript,${encodeURIComponent(source!)}`)) as {
      watchList(options: object): () => void;
    };
    const supabase = await signInAda();
    let shown: { words: string }[] = [];
    const stop = watchList({
      supabase,
      table: "notes",
      query: () => supabase.from("notes").select("words").order("id"),
      show: (rows: { words: string }[]) => {
        shown = rows;
      },
    });
    const writer = await signInAda();
    await until(async () => {
      await writer.from("notes").insert({ words: "heard" });
      return shown.length > 0;
    });
    expect(shown[0]!.words).toBe("heard");
    stop();
    await supabase.removeAllChannels();
  });

  test("the rows of one table come back from a backup", async () => {
    const folder = await mkdtemp(join(tmpdir(), "backup-"));
    try {
      const file = join(folder, "backup.gz");
      await sql("insert into public.notes (owner_id, words) values (0, 'saved')");
      expect((await runCommand("backup", [file], database)).code).toBe(0);
      await sql("delete from public.notes where words = 'saved'");
      const restore = (...words: string[]) =>
        runCommand("restore", ["--table", "public.notes", "--from", file, ...words], database);
      expect((await restore()).stdout).toContain("Nothing was changed.");
      expect((await sql("select from public.notes where words = 'saved'")).rowCount).toBe(0);
      expect((await restore("--apply")).stdout).toContain("1 row is inserted and 0 overwritten.");
      expect((await sql("select from public.notes where words = 'saved'")).rowCount).toBe(1);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });

  test("why a user does not see a row", async () => {
    await sql("insert into public.notes (owner_id, words) values (0, 'of somebody else')");
    const { stdout } = await runCommand("why", ["--user", ADA.email, "notes?words=eq.of somebody else"], database);
    expect(stdout).toContain("authenticated sees 0 of 1 rows.");
    expect(stdout).toMatch(/hidden id=\d+\n {2}own no\n/);
  });
});
