// Deno's denomailer, and its predecessor smtp, on the service's client of SMTP.

import { createTransport, type SendMailOptions, type Transporter } from "nodemailer";

type Address = string | { readonly name?: string; readonly mail: string };
type Addresses = Address | readonly Address[] | Readonly<Record<string, string>>;
type Attachment = {
  readonly filename: string;
  readonly content: string | Uint8Array;
  readonly encoding: "base64" | "binary" | "text";
  readonly contentType: string;
};
type MailOptions = {
  readonly from: Address;
  readonly to: Addresses;
  readonly cc?: Addresses;
  readonly bcc?: Addresses;
  readonly replyTo?: Address;
  readonly subject: string;
  readonly content?: string;
  readonly html?: string;
  readonly attachments?: readonly Attachment[];
  readonly headers?: Readonly<Record<string, string>>;
  readonly priority?: "high" | "normal" | "low";
  readonly date?: string;
  readonly inReplyTo?: string;
  readonly references?: string;
};
type ClientOptions = {
  readonly connection: {
    readonly hostname: string;
    readonly port?: number;
    readonly tls?: boolean;
    readonly auth?: { readonly username: string; readonly password: string };
  };
};

export class SMTPClient {
  readonly #transport: Transporter;

  constructor({ connection: { hostname, port, tls = false, auth } }: ClientOptions) {
    this.#transport = createTransport({
      host: hostname,
      port: port ?? (tls ? 465 : 25),
      secure: tls,
      ...(auth && { auth: { user: auth.username, pass: auth.password } }),
    });
  }

  async send(mail: MailOptions): Promise<void> {
    await this.#transport.sendMail(toMessage(mail));
  }

  async close(): Promise<void> {
    this.#transport.close();
  }
}

type ConnectOptions = {
  readonly hostname: string;
  readonly port?: number;
  readonly username?: string;
  readonly password?: string;
};

/** The client of smtp and of denomailer before version 1. */
export class SmtpClient {
  #client: SMTPClient | null = null;

  async connect(options: ConnectOptions): Promise<void> {
    this.#client = openClient(options, false);
  }

  async connectTLS(options: ConnectOptions): Promise<void> {
    this.#client = openClient(options, true);
  }

  async send(mail: MailOptions): Promise<void> {
    if (!this.#client) throw new Error("The client is not connected");
    await this.#client.send(mail);
  }

  async close(): Promise<void> {
    await this.#client?.close();
  }
}

function openClient({ hostname, port, username, password }: ConnectOptions, tls: boolean): SMTPClient {
  const auth = username !== undefined && password !== undefined && { auth: { username, password } };
  return new SMTPClient({ connection: { hostname, tls, ...(port !== undefined && { port }), ...auth } });
}

function toMessage({ content, html, attachments, ...mail }: MailOptions): SendMailOptions {
  // With "auto", the text is made of the HTML.
  const text = content === "auto" ? withoutTags(html ?? "") : content;
  const given = { ...mail, text, html, attachments: attachments?.map(toAttachment) };
  const addresses = {
    from: toAddress(mail.from),
    to: toAddresses(mail.to),
    ...(mail.cc && { cc: toAddresses(mail.cc) }),
    ...(mail.bcc && { bcc: toAddresses(mail.bcc) }),
    ...(mail.replyTo && { replyTo: toAddress(mail.replyTo) }),
  };
  return Object.fromEntries(Object.entries({ ...given, ...addresses }).filter(([, value]) => value !== undefined));
}

function toAddress(address: Address) {
  return typeof address === "string" ? address : { name: address.name ?? "", address: address.mail };
}

function toAddresses(addresses: Addresses) {
  if (Array.isArray(addresses)) return (addresses as readonly Address[]).map(toAddress);
  if (typeof addresses === "string" || "mail" in addresses) return [toAddress(addresses as Address)];
  return Object.entries(addresses as Record<string, string>).map(([name, mail]) => toAddress({ name, mail }));
}

function toAttachment({ filename, content, encoding, contentType }: Attachment) {
  const isBase64 = encoding === "base64" && typeof content === "string";
  return { filename, contentType, content: isBase64 ? Buffer.from(content, "base64") : toContent(content) };
}

function toContent(content: string | Uint8Array): string | Buffer {
  return typeof content === "string" ? content : Buffer.from(content);
}

/** The texts between tags, without those of styles and scripts. */
function withoutTags(html: string): string {
  let hidden = "";
  const texts = html.split("<").map((part, at) => {
    const end = at === 0 ? -1 : part.indexOf(">");
    const [, slash = "", name = ""] = /^(\/?)([a-z]+)/i.exec(part) ?? [];
    const tag = name.toLowerCase();
    if (at > 0 && hidden === "" && slash === "" && (tag === "style" || tag === "script")) hidden = tag;
    else if (slash !== "" && tag === hidden) hidden = "";
    return hidden === "" ? part.slice(end + 1) : "";
  });
  return texts.join(" ").replaceAll(/\s+/g, " ").trim();
}
