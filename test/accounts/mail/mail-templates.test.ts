import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type pg from "pg";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { TemplateValues } from "../../../accounts/mail/compile-template.ts";
import { readMailTemplates } from "../../../accounts/mail/mail-templates.ts";

const VALUES: TemplateValues = {
  ConfirmationURL: "https://api.example.org/auth/v1/verify?token=abc&type=recovery",
  Token: "123456",
  TokenHash: "abc",
  SiteURL: "https://app.example.org",
  Email: "ada@example.org",
  NewEmail: "",
  Data: { first_name: "<Ada> & 'Eve'", nested: { city: "Turin" } },
  RedirectTo: "https://app.example.org/welcome",
  Inviter: "<Grace>",
  Project: "Tasks & Co",
};

/** A database in which nobody has saved a template. */
const client = { query: async () => ({ rows: [] }) } as unknown as pg.ClientBase;

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "templates-"));
});
afterEach(() => rm(folder, { recursive: true }));

const write = (name: string, text: string) => writeFile(join(folder, name), text);

describe("the templates of e-mails", () => {
  test("without a folder have the link and the code in the default text", async () => {
    const { subject, text, html } = await readMailTemplates(null).write(client, "recovery", "ada@example.org", VALUES);
    expect(subject).toBe("Set a new password");
    expect(text).toContain(`${VALUES.ConfirmationURL}\n`);
    expect(text).toContain("123456");
    expect(html).toBeUndefined();
  });

  test("name the inviter and the project in an invitation, as text and escaped in HTML", async () => {
    const { subject, text, html } = await readMailTemplates(null).write(
      client,
      "invitation",
      "ada@example.org",
      VALUES,
    );
    expect(subject).toBe("<Grace> invites you to Tasks & Co");
    expect(text).toContain(`<Grace> invites you to Tasks & Co.`);
    expect(text).toContain(`${VALUES.ConfirmationURL}\n`);
    expect(html).toContain("<strong>&lt;Grace&gt;</strong> invites you to <strong>Tasks &amp; Co</strong>");
    expect(html).toContain('href="https://api.example.org/auth/v1/verify?token=abc&amp;type=recovery"');
  });

  test("insert values in the form that Supabase's templates have, escaped in HTML and nowhere else", async () => {
    await write(
      "magic_link.html",
      'Subject: Hello {{ .Data.first_name }}\n\n<h2>Hi {{.Data.first_name}}</h2>\n<p><a href="{{ .ConfirmationURL }}">Log In</a></p>' +
        "<p>{{- .Token }} {{ .Data.nested.city }}{{ .Data.absent }} {{ .Data.nested }}</p>",
    );
    const { subject, text, html } = await readMailTemplates(folder).write(
      client,
      "magic_link",
      "ada@example.org",
      VALUES,
    );
    expect(subject).toBe("Hello <Ada> & 'Eve'");
    expect(html).toContain("<h2>Hi &lt;Ada&gt; &amp; &#39;Eve&#39;</h2>");
    expect(html).toContain('href="https://api.example.org/auth/v1/verify?token=abc&amp;type=recovery"');
    expect(html).toContain("<p>123456 Turin {&quot;city&quot;:&quot;Turin&quot;}</p>");
    expect(text).toBe(`Hi <Ada> & 'Eve'\nLog In ${VALUES.ConfirmationURL}\n123456 Turin {"city":"Turin"}`);
  });

  test("keep the default subject without a first line for it, and cannot add headers by a value in it", async () => {
    await write("recovery.txt", "Code: {{ .Token }}\n");
    await write("invite.txt", "Subject: For {{ .Data.first_name }}\n\nCode: {{ .Token }}\n");
    const templates = readMailTemplates(folder);
    expect(await templates.write(client, "recovery", "ada@example.org", VALUES)).toEqual({
      to: "ada@example.org",
      subject: "Set a new password",
      text: "Code: 123456\n",
    });
    const values = { ...VALUES, Data: { first_name: "Ada\r\nBcc: eve@example.org" } };
    const { subject } = await templates.write(client, "invite", "ada@example.org", values);
    expect(subject).toBe("For Ada Bcc: eve@example.org");
  });

  test("read no property that a value inherits", async () => {
    await write("invite.txt", "[{{ .Data.constructor }}{{ .Data.first_name.length }}]");
    const { text } = await readMailTemplates(folder).write(client, "invite", "ada@example.org", VALUES);
    expect(text).toBe("[]");
  });
});

describe("a template that cannot be used ends the start with", () => {
  test.each([
    ["an unknown variable", "{{ .Tokn }}", "{{ .Tokn }} is not a variable; the variables are {{ .ConfirmationURL }}, "],
    ["a part of a text", "{{ .Email.host }}", "{{ .Email.host }} is not a variable"],
    ["a condition", "{{ if .Data }}x{{ end }}", "{{ if .Data }} is not a variable"],
    ["an open expression", "Code: {{ .Token", '"{{" without "}}"'],
  ])("the name of the file and of %s", async (_title, source, fault) => {
    await write("recovery.html", source);
    expect(() => readMailTemplates(folder)).toThrow(`MAIL_TEMPLATES_DIR: ${join(folder, "recovery.html")}: ${fault}`);
  });

  test("the names of e-mails, if the file has another one", async () => {
    await write("magiclink.html", "{{ .Token }}");
    expect(() => readMailTemplates(folder)).toThrow(
      `${join(folder, "magiclink.html")} is not the name of an e-mail. Did you mean magic_link.html?`,
    );
  });

  test("its name, if there are two files for it", async () => {
    await write("invite.html", "{{ .Token }}");
    await write("invite.txt", "{{ .Token }}");
    expect(() => readMailTemplates(folder)).toThrow("invite has two templates");
  });

  test("the folder, if that does not exist", () => {
    expect(() => readMailTemplates(join(folder, "absent"))).toThrow(/^MAIL_TEMPLATES_DIR: .*absent: ENOENT/);
  });
});
