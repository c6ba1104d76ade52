import { expect, test } from "vitest";
import { type Message, makeMailer } from "../../../engine/mail/mailer.ts";
import { type Outbox, openOutbox } from "../../../engine/mail/outbox.ts";
import { until } from "../../until.ts";
import { type SmtpServer, startSmtpServer } from "./smtp-server.ts";

const messageTo = (to: string): Message => ({ to, subject: "Hello", text: "Hello" });
const SETTINGS = { mailFrom: "us@example.org", mailDir: null, nodeEnv: "test", dataDir: "" } as const;

type Opened = { readonly server: SmtpServer; readonly logged: readonly string[]; readonly outbox: Outbox };

async function withServer(work: (opened: Opened) => Promise<void>): Promise<void> {
  const opened = await openAll();
  try {
    await work(opened);
  } finally {
    await opened.outbox.close();
    await opened.server.close();
  }
}

async function openAll(): Promise<Opened> {
  const server = await startSmtpServer();
  const logged: string[] = [];
  const write = (_entry: unknown, message?: string) => void logged.push(message ?? "");
  const log = { info: write, warn: write, error: write };
  const mailer = makeMailer({ ...SETTINGS, smtpUrl: server.url }, log)!;
  return { server, logged, outbox: openOutbox({ mailer, log, pauses: [1, 1], most: 5 }) };
}

test("what was put in is sent, all of it before it closes", () =>
  withServer(async ({ server, outbox }) => {
    for (const name of ["a", "b", "c", "d", "e"]) outbox.put(async () => messageTo(`${name}@example.org`));
    outbox.put(async () => null);
    await outbox.close();
    expect(server.received.flatMap(({ to }) => to).sort()).toEqual(
      ["a", "b", "c", "d", "e"].map((name) => `${name}@example.org`),
    );
    outbox.put(async () => messageTo("late@example.org"));
    expect(server.received).toHaveLength(5);
  }));

test("a server that refuses for a while is asked again", () =>
  withServer(async ({ server, logged, outbox }) => {
    server.refuse(2);
    outbox.put(async () => messageTo("a@example.org"));
    await until(() => server.received.length > 0);
    expect(logged).toEqual(["a mail could not be sent yet", "a mail could not be sent yet"]);
  }));

test("one that cannot be written or sent does not keep others from it", () =>
  withServer(async ({ server, logged, outbox }) => {
    outbox.put(() => Promise.reject(new Error("the database is away")));
    server.refuse(3);
    outbox.put(async () => messageTo("a@example.org"));
    while (logged.filter((line) => line === "a mail was not sent").length < 2) {
      await new Promise((done) => setTimeout(done, 5));
    }
    outbox.put(async () => messageTo("b@example.org"));
    await outbox.close();
    expect(server.received.map(({ to }) => to)).toEqual([["b@example.org"]]);
  }));

test("a flood is cut off, and the log says so", () =>
  withServer(async ({ server, logged, outbox }) => {
    for (let n = 0; n < 20; n++) outbox.put(async () => messageTo(`${n}@example.org`));
    await outbox.close();
    expect(server.received.length).toBeLessThan(10);
    expect(logged).toContain("too many mails are asked for; this one is not sent");
  }));
