import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "../../../until.ts";

export type ReceivedMail = {
  readonly subject: string;
  readonly text: string;
  /** The first link. */
  readonly link: URL;
  readonly code: string;
};

/** A folder for MAIL_DIR. */
export class MailFolder {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  static async open(): Promise<MailFolder> {
    return new MailFolder(await mkdtemp(join(tmpdir(), "mails-")));
  }

  remove(): Promise<void> {
    return rm(this.path, { recursive: true });
  }

  /** The e-mails to an address, oldest first, once there are as many. */
  async receive(address: string, count = 1): Promise<ReceivedMail[]> {
    let mails: string[] = [];
    await until(async () => {
      mails = await this.#mailsTo(address);
      return mails.length >= count;
    });
    return mails.map(toReceivedMail);
  }

  /** The e-mail to an address that has received no other. */
  async receiveOne(address: string): Promise<ReceivedMail> {
    const mails = await this.receive(address);
    if (mails.length !== 1) throw new Error(`${address} has ${mails.length} e-mails`);
    return mails[0]!;
  }

  async count(address: string): Promise<number> {
    return (await this.#mailsTo(address)).length;
  }

  async #mailsTo(address: string): Promise<string[]> {
    const names = (await readdir(this.path)).filter((name) => name.endsWith(".eml")).sort();
    const mails = await Promise.all(names.map((name) => readFile(join(this.path, name), "utf8")));
    return mails.filter((mail) => new RegExp(`^To: <?${RegExp.escape(address)}>?\r?$`, "m").test(mail));
  }
}

function toReceivedMail(source: string): ReceivedMail {
  const subject = /^Subject: (.*?)\r?$/m.exec(source)![1]!;
  const text = source.slice(source.indexOf("\r\n\r\n") + 4);
  const link = /https?:\/\/\S+\/verify\?\S+/.exec(text)?.[0] ?? "about:blank";
  return { subject, text, link: new URL(link), code: /\b\d{6}\b/.exec(text.replaceAll(/\S*:\/\/\S*/g, ""))?.[0] ?? "" };
}
