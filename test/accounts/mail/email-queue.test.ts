import { expect, test } from "vitest";
import { EmailQueue } from "../../../accounts/mail/email-queue.ts";
import { type Email, makeMailer } from "../../../accounts/mail/mailer.ts";
import { until } from "../../until.ts";
import { type SmtpServer, startSmtpServer } from "./smtp-server.ts";

const messageTo = (to: string): Email => ({ to, subject: "Hello", text: "Hello" });
const SETTINGS = { mailFrom: "us@example.org", mailDir: null, nodeEnv: "test", dataDir: "" } as const;

type QueueWithServer = { readonly server: SmtpServer; readonly logged: readonly string[]; readonly queue: EmailQueue };

async function withServer(work: (opened: QueueWithServer) => Promise<void>): Promise<void> {
  const opened = await openAll();
  try {
    await work(opened);
  } finally {
    await opened.queue.close();
    await opened.server.close();
  }
}

async function openAll(): Promise<QueueWithServer> {
  const server = await startSmtpServer();
  const logged: string[] = [];
  const write = (_entry: unknown, message?: string) => void logged.push(message ?? "");
  const log = { info: write, warn: write, error: write };
  const mailer = makeMailer({ ...SETTINGS, smtpUrl: server.url }, log)!;
  return { server, logged, queue: new EmailQueue({ mailer, log, retryDelaysMs: [1, 1], maxWaiting: 5 }) };
}

test("the queue sends all e-mails before it closes", () =>
  withServer(async ({ server, queue }) => {
    for (const name of ["a", "b", "c", "d", "e"]) queue.add(async () => messageTo(`${name}@example.org`));
    queue.add(async () => null);
    await queue.close();
    expect(server.received.flatMap(({ to }) => to).sort()).toEqual(
      ["a", "b", "c", "d", "e"].map((name) => `${name}@example.org`),
    );
    queue.add(async () => messageTo("late@example.org"));
    expect(server.received).toHaveLength(5);
  }));

test("a temporary failure of the SMTP server is retried", () =>
  withServer(async ({ server, logged, queue }) => {
    server.refuse(2);
    queue.add(async () => messageTo("a@example.org"));
    await until(() => server.received.length > 0);
    expect(logged).toEqual(["sending an e-mail failed; retrying", "sending an e-mail failed; retrying"]);
  }));

test("an e-mail that cannot be created or sent does not block others", () =>
  withServer(async ({ server, logged, queue }) => {
    queue.add(() => Promise.reject(new Error("the database is away")));
    server.refuse(3);
    queue.add(async () => messageTo("a@example.org"));
    while (logged.filter((line) => line === "an e-mail could not be sent").length < 2) {
      await new Promise((done) => setTimeout(done, 5));
    }
    queue.add(async () => messageTo("b@example.org"));
    await queue.close();
    expect(server.received.map(({ to }) => to)).toEqual([["b@example.org"]]);
  }));

test("a full queue drops further e-mails and logs a warning", () =>
  withServer(async ({ server, logged, queue }) => {
    for (let n = 0; n < 20; n++) queue.add(async () => messageTo(`${n}@example.org`));
    await queue.close();
    expect(server.received.length).toBeLessThan(10);
    expect(logged).toContain("the e-mail queue is full; an e-mail was dropped");
  }));
