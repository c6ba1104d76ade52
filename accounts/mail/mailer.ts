import { randomUUID } from "node:crypto";
import { access, constants, mkdir, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { type Config, ConfigError } from "#config";
import type { Logger } from "#runtime/log";

export type Email = {
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  /** The e-mail as HTML; `text` is the alternative then. */
  readonly html?: string;
};

type Mailer = {
  send(message: Email): Promise<void>;
  close(): void;
};

type MailSettings = Pick<Config, "smtpUrl" | "mailFrom" | "mailDir" | "nodeEnv" | "dataDir">;

/** The library is loaded with the first e-mail. */
const loadLibrary = () => import("nodemailer");

const DEFAULT_SENDER = "no-reply@localhost";
const CONNECT_TIMEOUT_MS = 10_000;
const SOCKET_TIMEOUT_MS = 30_000;

/** An e-mail that was sent. */
export type SentEmail = Pick<Email, "to" | "subject" | "text"> & { readonly at: string };

const MAX_EMAILS = 50;

/** True in development, if no SMTP server sends e-mails: their links sign users in. */
export function keepsEmails({ nodeEnv, smtpUrl }: Pick<Config, "nodeEnv" | "smtpUrl">): boolean {
  return nodeEnv !== "production" && smtpUrl === null;
}

/** The newest e-mails that a process has sent, for developers. */
export class RecentEmails {
  readonly #emails: SentEmail[] = [];

  /** A mailer that keeps what it sends. */
  follow(mailer: Mailer): Mailer {
    return {
      send: async (message) => {
        await mailer.send(message);
        const { to, subject, text } = message;
        this.#emails.push({ at: new Date().toISOString(), to, subject, text });
        if (this.#emails.length > MAX_EMAILS) this.#emails.shift();
      },
      close: () => mailer.close(),
    };
  }

  list(): readonly SentEmail[] {
    return this.#emails;
  }
}

/** Sends by SMTP, or writes to a folder in development; null in production without an SMTP server. */
export function makeMailer(
  config: MailSettings,
  log: Pick<Logger, "info">,
  recent: RecentEmails | null = null,
): Mailer | null {
  const { smtpUrl, mailDir, mailFrom, nodeEnv, dataDir } = config;
  const from = mailFrom ?? DEFAULT_SENDER;
  if (smtpUrl !== null) return smtpMailer(smtpUrl, from);
  if (mailDir === null && nodeEnv === "production") return null;
  const mailer = folderMailer(mailDir ?? join(dataDir, "mail"), from, log);
  return recent?.follow(mailer) ?? mailer;
}

function smtpMailer(url: string, from: string): Mailer {
  let transport: ReturnType<typeof openSmtpTransport> | null = null;
  return {
    async send(message) {
      transport ??= retryable(openSmtpTransport(url), () => {
        transport = null;
      });
      await (await transport).sendMail(toMailOptions(message, from));
    },
    close: () =>
      void transport?.then(
        (opened) => opened.close(),
        () => {},
      ),
  };
}

/** The library is loaded with the first e-mail; after a failure, the next e-mail loads it again. */
function retryable<T>(opening: Promise<T>, forget: () => void): Promise<T> {
  opening.catch(forget);
  return opening;
}

async function openSmtpTransport(url: string) {
  const { createTransport } = await loadLibrary();
  const transport = createTransport({
    url,
    pool: true,
    maxConnections: 2,
    connectionTimeout: CONNECT_TIMEOUT_MS,
    greetingTimeout: CONNECT_TIMEOUT_MS,
    socketTimeout: SOCKET_TIMEOUT_MS,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  transport.use("stream", refuseOtherRecipients);
  return transport;
}

/** Writes each e-mail as an .eml file, which mail programs can open. */
function folderMailer(folder: string, from: string, log: Pick<Logger, "info">): Mailer {
  let composer: ReturnType<typeof openComposer> | null = null;
  return {
    async send(message) {
      composer ??= retryable(openComposer(), () => {
        composer = null;
      });
      const { message: bytes } = await (await composer).sendMail(toMailOptions(message, from));
      const file = join(
        await createMailFolder(folder),
        `${new Date().toISOString().replaceAll(":", "")}-${randomUUID()}.eml`,
      );
      try {
        await writeFile(file, bytes as Buffer, { mode: 0o600 });
      } catch (error) {
        // A full disk leaves a truncated file that looks like a complete e-mail.
        await rm(file, { force: true });
        throw error;
      }
      log.info({ file }, "an e-mail was written to a file, because SMTP_URL is not set");
    },
    close() {},
  };
}

async function openComposer() {
  const { createTransport } = await loadLibrary();
  const composer = createTransport({ streamTransport: true, buffer: true, newline: "windows" });
  // Quoted-printable would break long links over several lines, so that they could not be copied from the file.
  composer.use("stream", ({ message }, done) => {
    for (const part of [message, ...(message as unknown as MessagePart).childNodes]) {
      part.getTransferEncoding = () => "8bit";
    }
    done();
  });
  composer.use("stream", refuseOtherRecipients);
  return composer;
}

/** The text and the HTML of an e-mail that has both are its child nodes. */
type MessagePart = {
  getTransferEncoding(): string;
  readonly childNodes: readonly { getTransferEncoding(): string }[];
};

type ComposedEmail = {
  readonly data: { readonly to?: unknown };
  readonly message: { getEnvelope(): { to?: unknown } };
};

/** nodemailer parses `<a@example.org>` as a@example.org. The e-mail is refused if the parsed recipient differs from the given address. */
function refuseOtherRecipients({ data, message }: ComposedEmail, done: (error?: Error) => void): void {
  const { address } = data.to as EmailAddress;
  const { to } = message.getEnvelope();
  const isIntended = /^[^@]+@[^@]+$/.test(address) && String(to).toLowerCase() === address.toLowerCase();
  done(isIntended ? undefined : new Error(`"${address}" is not an e-mail address: the e-mail would go to ${to}`));
}

type EmailAddress = { readonly name: string; readonly address: string };

/** Passes the address as an object, because nodemailer could parse a string as several addresses. */
function toMailOptions({ to: address, subject, text, html }: Email, from: string) {
  const to: EmailAddress = { name: "", address };
  return { from, to, subject, text, html, headers: { "Auto-Submitted": "auto-generated" } };
}

/** Creates the folder for e-mails that are written instead of sent; readable by this user only. */
async function createMailFolder(folder: string): Promise<string> {
  await mkdir(resolve(folder), { recursive: true, mode: 0o700 });
  return resolve(folder);
}

/** Fails at startup when MAIL_DIR is not writable, instead of when the first e-mail is lost. */
export async function checkMailFolder({ smtpUrl, mailDir }: Pick<Config, "smtpUrl" | "mailDir">): Promise<void> {
  if (smtpUrl !== null || mailDir === null) return;
  try {
    await access(await createMailFolder(mailDir), constants.W_OK | constants.X_OK);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new ConfigError(`MAIL_DIR must be a folder that this user can write to, not "${mailDir}" (${code}).`, {
      cause,
    });
  }
}
