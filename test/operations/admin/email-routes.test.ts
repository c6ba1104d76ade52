import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import jwt from "jsonwebtoken";
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { useClient, useDatabase } from "../../database.ts";
import { useFixture, useFolder } from "../../fixture.ts";
import { MailFolder } from "../../rest-gateway/sign-in/auth-v1/mail-folder.ts";
import { SECRET } from "../../secret.ts";
import { serve, useService } from "../../serve.ts";

const EMAIL = "ada@example.org";
const RECOVERY = "/email-templates/recovery";
const SOURCE = { subject: "For {{ .Email }}", html: "<p>{{ .Token }} & {{ .Data.name }}</p>" };

const database = useDatabase({
  template: "platform",
  sql: `insert into auth.users (user_id, username, email, email_confirmed_at) values (1, 'ada', '${EMAIL}', now()), (2, 'bob', null, null);
    insert into auth.user_roles (user_id, role) values (1, 'admin'), (2, 'admin')`,
});
const mails = useFixture(() => MailFolder.open());
const settings = () => ({
  MAIL_DIR: mails.path,
  STUDIO: "administrators",
  BASE_SCHEMA: "platform",
  MAIL_INTERVAL_SECONDS: "0",
});
const service = useService({ database, settings });
const owner = useClient(database.ownerUrl);
afterEach(() => owner.query("delete from auth.email_templates"));

type Sender = { readonly role?: string; readonly sub?: string; readonly url?: string };

async function send(method: string, path: string, body?: object, { role = "admin", sub, url }: Sender = {}) {
  // Without a time of issue, the token is not older than the account, which was made in the same second.
  const token = jwt.sign({ role, sub }, SECRET, { noTimestamp: true });
  const response = await fetch(`${url ?? service.url}/admin/v1${path}`, {
    method,
    headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, body: text === "" ? null : JSON.parse(text) };
}

async function templateOf(name: string, sender: Sender = {}) {
  const { body } = await send("GET", "/email-templates", undefined, sender);
  return body.templates.find((template: { name: string }) => template.name === name);
}

/** Asks for a new password, and returns the e-mail. */
async function recoveryFrom(url: string) {
  const count = await mails.count(EMAIL);
  await fetch(`${url}/auth/v1/recover`, {
    method: "POST",
    headers: { apikey: jwt.sign({ role: "anon" }, SECRET), "Content-Type": "application/json" },
    body: JSON.stringify({ email: EMAIL }),
  });
  return (await mails.receive(EMAIL, count + 1)).at(-1)!;
}

describe("the templates of e-mails", () => {
  test("are the default ones at first, each with its subject and its text", async () => {
    const { body } = await send("GET", "/email-templates");
    expect(body.templates.map(({ name, origin }: { name: string; origin: string }) => [name, origin])).toEqual(
      ["confirmation", "invite", "invitation", "magic_link", "recovery", "email_change", "reauthentication"].map(
        (name) => [name, "default"],
      ),
    );
    expect(body.variables).toContain("ConfirmationURL");
    expect(await templateOf("recovery")).toMatchObject({ subject: "Set a new password", html: null, saved_at: null });
    expect((await templateOf("recovery")).text).toContain("{{ .ConfirmationURL }}");
  });

  test("are saved, sent by all processes in place of the default ones, and deleted", async () => {
    const other = await serve(database, settings());
    try {
      const saved = await send("POST", RECOVERY, SOURCE, { sub: "1" });
      expect(saved).toMatchObject({ status: 200, body: { ...SOURCE, text: null, origin: "saved", saved_by: "1" } });
      expect(await templateOf("recovery", { url: other.url })).toEqual(saved.body);
      for (const { url } of [service, other]) {
        const { subject, text } = await recoveryFrom(url);
        expect(subject).toBe(`For ${EMAIL}`);
        expect(text).toMatch(/<p>\d{6} & /);
      }
      expect((await send("DELETE", RECOVERY, undefined, { sub: "2" })).status).toBe(204);
      expect((await send("DELETE", RECOVERY)).status).toBe(404);
      expect((await recoveryFrom(other.url)).subject).toBe("Set a new password");
    } finally {
      await other.stop();
    }
  });

  test("are recorded in the audit log when they are changed", async () => {
    await send("POST", "/email-templates/magic_link", SOURCE, { sub: "1" });
    await send("DELETE", "/email-templates/magic_link", undefined, { sub: "1" });
    const { rows } = await owner.query(
      "select event, user_id, details from auth.audit_log where details ->> 'name' = 'magic_link' order by id",
    );
    expect(rows).toMatchObject(
      ["studio.email_template_saved", "studio.email_template_deleted"].map((event) => ({
        ...{ event, user_id: "1", details: { name: "magic_link" } },
      })),
    );
  });

  test("are shown with the values of an example before they are saved", async () => {
    const { body } = await send("POST", `${RECOVERY}/preview`, SOURCE);
    expect(body).toEqual({
      subject: `For ${EMAIL}`,
      html: "<p>123456 & Ada Lovelace</p>",
      text: "123456 & Ada Lovelace",
    });
    expect((await templateOf("recovery")).origin).toBe("default");
    await send("POST", `${RECOVERY}/sample`, { ...SOURCE, email: "eve@example.org" });
    expect((await mails.receiveOne("eve@example.org")).text).toContain("<p>123456 & Ada Lovelace</p>");
  });
});

test.each([
  ["an unknown value", { subject: "s", text: "{{ .Tokn }}" }, /\{\{ \.Tokn \}\} is not a variable; the variables are/],
  ["a condition in the subject", { subject: "{{ if .Data }}", text: "t" }, /\{\{ if \.Data \}\} is not a variable/],
  ["an open expression", { subject: "s", html: "<p>{{ .Token" }, /"\{\{" without "\}\}"/],
  ["neither HTML nor a text", { subject: "s", html: "  " }, /neither HTML nor a text/],
  ["no subject", { subject: "  ", text: "t" }, /The subject has 1 to 500 characters/],
  ["a text that is too long", { subject: "s", text: "x".repeat(30_001) }, /at most 30000 characters/],
])("%s is refused with a message, and nothing is saved", async (_, source, message) => {
  for (const path of [RECOVERY, `${RECOVERY}/preview`, `${RECOVERY}/sample`]) {
    const { status, body } = await send("POST", path, path.endsWith("/sample") ? { ...source, email: EMAIL } : source);
    expect(status).toBe(400);
    expect(body.error.message).toMatch(message);
  }
  expect((await templateOf("recovery")).origin).toBe("default");
});

test("there are no other e-mails", async () => {
  for (const [method, path] of [
    ["POST", ""],
    ["POST", "/preview"],
    ["DELETE", ""],
  ] as const) {
    const { status } = await send(method, `/email-templates/welcome${path}`, method === "POST" ? SOURCE : undefined);
    expect(status).toBe(404);
  }
});

test("other callers neither read nor write them", async () => {
  for (const role of ["authenticated", "service_role"]) {
    expect((await send("GET", "/email-templates", undefined, { role })).status).toBe(403);
    for (const path of ["", "/preview", "/sample"]) {
      expect((await send("POST", RECOVERY + path, { ...SOURCE, email: EMAIL }, { role })).status).toBe(403);
    }
    expect((await send("DELETE", RECOVERY, undefined, { role })).status).toBe(403);
  }
});

describe("a file in MAIL_TEMPLATES_DIR", () => {
  const templates = useFolder("templates-");
  const file = join(templates, "recovery.txt");
  beforeAll(() => writeFile(file, "Subject: From a file\n\n{{ .Token }}\n"));
  const fromFiles = useFixture(() => serve(database, { ...settings(), MAIL_TEMPLATES_DIR: templates }));

  test("is sent in place of a saved template, which cannot be saved there", async () => {
    await send("POST", RECOVERY, SOURCE);
    const at = { url: fromFiles.url };
    expect(await templateOf("recovery", at)).toMatchObject({
      origin: "file",
      file,
      subject: "From a file",
      html: null,
    });
    expect((await recoveryFrom(fromFiles.url)).subject).toBe("From a file");
    const refused = await send("POST", RECOVERY, SOURCE, at);
    expect(refused.status).toBe(409);
    expect(refused.body.error.message).toBe(`The file ${file} is in force.`);
    await send("DELETE", RECOVERY);
  });
});
