import { randomUUID } from "node:crypto";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createTransport } from "nodemailer";
import type { Config } from "../config/config.ts";
import type { Logger } from "../log.ts";
import { makeMailFolder } from "./mail-folder.ts";

export type Message = { readonly to: string; readonly subject: string; readonly text: string };

export type Mailer = {
  send(message: Message): Promise<void>;
  close(): void;
};

type Settings = Pick<Config, "smtpUrl" | "mailFrom" | "mailDir" | "nodeEnv" | "dataDir">;

const FROM_NOBODY = "no-reply@localhost";
const CONNECT_MS = 10_000;
const SILENCE_MS = 30_000;

/** By SMTP, or into a folder for who develops; null in production without a server. */
export function makeMailer(config: Settings, log: Pick<Logger, "info">): Mailer | null {
  const { smtpUrl, mailDir, mailFrom, nodeEnv, dataDir } = config;
  const from = mailFrom ?? FROM_NOBODY;
  if (smtpUrl !== null) return smtpMailer(smtpUrl, from);
  if (mailDir !== null) return folderMailer(mailDir, from, log);
  return nodeEnv === "production" ? null : folderMailer(join(dataDir, "mail"), from, log);
}

function smtpMailer(url: string, from: string): Mailer {
  const transport = createTransport({
    url,
    pool: true,
    maxConnections: 2,
    connectionTimeout: CONNECT_MS,
    greetingTimeout: CONNECT_MS,
    socketTimeout: SILENCE_MS,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  transport.use("stream", refuseOtherRecipients);
  return {
    send: async (message) => void (await transport.sendMail(toMail(message, from))),
    close: () => transport.close(),
  };
}

/** Each message is a file that mail programs open. */
function folderMailer(folder: string, from: string, log: Pick<Logger, "info">): Mailer {
  const composer = createTransport({ streamTransport: true, buffer: true, newline: "windows" });
  // A link is longer than a line of quoted-printable, in which nobody who looks into the file could open it.
  composer.use("stream", (mail, done) => {
    mail.message.getTransferEncoding = () => "8bit";
    done();
  });
  composer.use("stream", refuseOtherRecipients);
  return {
    async send(message) {
      const { message: bytes } = await composer.sendMail(toMail(message, from));
      const file = join(
        await makeMailFolder(folder),
        `${new Date().toISOString().replaceAll(":", "")}-${randomUUID()}.eml`,
      );
      try {
        await writeFile(file, bytes as Buffer, { mode: 0o600 });
      } catch (error) {
        // On a full disk the half of a mail, which would look like one.
        await rm(file, { force: true });
        throw error;
      }
      log.info({ file }, "a mail was written, not sent: SMTP_URL is not set");
    },
    close() {},
  };
}

type Composed = { readonly data: { readonly to?: unknown }; readonly message: { getEnvelope(): { to?: unknown } } };

/** The library reads `<a@example.org>` as a@example.org: a mail goes to the address that it is for, or nowhere. */
function refuseOtherRecipients({ data, message }: Composed, done: (error?: Error) => void): void {
  const { address } = data.to as Address;
  const { to } = message.getEnvelope();
  const isMeant = /^[^@]+@[^@]+$/.test(address) && String(to).toLowerCase() === address.toLowerCase();
  done(isMeant ? undefined : new Error(`"${address}" is no e-mail address: the mail would go to ${to}`));
}

type Address = { readonly name: string; readonly address: string };

/** The address as an object: as a text it could be taken for several. */
function toMail({ to: address, subject, text }: Message, from: string) {
  const to: Address = { name: "", address };
  return { from, to, subject, text, headers: { "Auto-Submitted": "auto-generated" } };
}
