import { mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { makeMailer } from "../../../accounts/mail/mailer.ts";
import { MAY_MOUNT, mountSmallDisk, saySkipped } from "../../small-disk.ts";
import { startSmtpServer } from "./smtp-server.ts";

saySkipped("A full disk below MAIL_DIR");

const SETTINGS = { smtpUrl: null, mailFrom: null, mailDir: null, nodeEnv: "development", dataDir: "" } as const;
const LINK = `https://example.org/a?token=${"b".repeat(80)}`;
const MESSAGE = { to: "ada@example.org", subject: "Hello", text: `Open this:\n\n${LINK}\n` };
const logged: unknown[] = [];
const log = { info: (entry: unknown) => void logged.push(entry) };

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "mailer-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

describe("without an SMTP server", () => {
  test("an e-mail is written to a private file, whose path is logged", async () => {
    const mailer = makeMailer({ ...SETTINGS, dataDir: folder }, log)!;
    await mailer.send(MESSAGE);
    const [name] = await readdir(join(folder, "mail"));
    const file = join(folder, "mail", name!);
    expect(name).toMatch(/\.eml$/);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect((await stat(join(folder, "mail"))).mode & 0o777).toBe(0o700);
    expect(await readFile(file, "utf8")).toContain(
      "From: no-reply@localhost\r\nTo: ada@example.org\r\nSubject: Hello\r\n",
    );
    expect(logged.at(-1)).toEqual({ file });
    expect(await readFile(file, "utf8")).toContain(`\r\n${LINK}\r\n`);
  });

  test("MAIL_DIR receives the e-mails, in production too", async () => {
    const mailDir = join(folder, "elsewhere");
    await makeMailer({ ...SETTINGS, nodeEnv: "production", mailDir }, log)!.send(MESSAGE);
    expect(await readdir(mailDir)).toHaveLength(1);
  });

  test.runIf(MAY_MOUNT)("a mail that finds no room leaves no half of itself", async () => {
    await using disk = await mountSmallDisk("64k");
    const mailer = makeMailer({ ...SETTINGS, mailDir: disk.folder }, log)!;
    await mailer.send(MESSAGE);
    const long = { ...MESSAGE, text: "A long mail.\n".repeat(10_000) };
    await expect(mailer.send(long)).rejects.toThrow("ENOSPC");
    expect(await readdir(disk.folder)).toHaveLength(1);
  });

  test("production without MAIL_DIR has no mailer", () => {
    expect(makeMailer({ ...SETTINGS, nodeEnv: "production", dataDir: folder }, log)).toBeNull();
  });
});

test("an e-mail is sent by SMTP to exactly one recipient", async () => {
  const server = await startSmtpServer();
  const mailer = makeMailer({ ...SETTINGS, smtpUrl: server.url, mailFrom: "Example <us@example.org>" }, log)!;
  try {
    await mailer.send(MESSAGE);
    await mailer.send({ ...MESSAGE, to: "Ada@Example.ORG" });
    expect(server.received[0]).toMatchObject({ from: "us@example.org", to: ["ada@example.org"] });
    expect(server.received[0]!.text).toContain("From: Example <us@example.org>");
    expect(server.received[0]!.text).toContain("Auto-Submitted: auto-generated");
    expect(server.received[0]!.text).toContain("token=3Db");
    expect(server.received[1]!.to).toEqual(["Ada@example.org"]);
  } finally {
    mailer.close();
    await server.close();
  }
});

test.each(["<victim@example.org>", "a <victim@example.org>", "a,victim@example.org", " victim@example.org", "victim"])(
  "an e-mail to %j is not sent, because nodemailer would parse another recipient",
  async (to) => {
    const server = await startSmtpServer();
    const mailers = [
      makeMailer({ ...SETTINGS, smtpUrl: server.url, mailFrom: "us@example.org" }, log)!,
      makeMailer({ ...SETTINGS, mailDir: folder }, log)!,
    ];
    try {
      for (const mailer of mailers)
        await expect(mailer.send({ ...MESSAGE, to })).rejects.toThrow("is not an e-mail address");
      expect(server.received).toEqual([]);
      expect(await readdir(folder)).toEqual([]);
    } finally {
      for (const mailer of mailers) mailer.close();
      await server.close();
    }
  },
);
