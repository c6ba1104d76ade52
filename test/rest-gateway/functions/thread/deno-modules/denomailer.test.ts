import { expect, test } from "vitest";
import { SMTPClient, SmtpClient } from "../../../../../rest-gateway/functions/thread/deno-modules/denomailer.ts";
import { startSmtpServer } from "../../../../accounts/mail/smtp-server.ts";
import { useFixture } from "../../../../fixture.ts";

const server = useFixture(startSmtpServer);
const connection = () => ({ hostname: "127.0.0.1", port: Number(new URL(server.url).port), tls: false });

test("mails have all kinds of recipients, a text of their HTML, and attachments", async () => {
  const client = new SMTPClient({ connection: connection() });
  await client.send({
    from: "Shop <shop@example.org>",
    to: [{ name: "Ann", mail: "ann@example.org" }, "bob@example.org"],
    cc: { Carl: "carl@example.org" },
    bcc: "dora@example.org",
    replyTo: "help@example.org",
    subject: "Your order",
    content: "auto",
    html: "<style>p { color: red }</style><p>It <b>arrives</b></p>",
    attachments: [{ filename: "a.txt", content: "YQ==", encoding: "base64", contentType: "text/plain" }],
  });
  await client.close();
  const [{ from, to, text }] = server.received.slice(-1) as [(typeof server.received)[number]];
  expect([from, to]).toEqual([
    "shop@example.org",
    ["ann@example.org", "bob@example.org", "carl@example.org", "dora@example.org"],
  ]);
  expect(text).toContain("Reply-To: help@example.org");
  expect(text).toContain("\nIt arrives");
  expect(text).toMatch(/filename=a\.txt[\s\S]*YQ==/);
  expect(text).not.toContain("dora@");
});

test("the older client connects first", async () => {
  const client = new SmtpClient();
  const mail = { from: "a@example.org", to: "b@example.org", subject: "Older", content: "text" };
  await expect(client.send(mail)).rejects.toThrow("not connected");
  await client.connect(connection());
  await client.send(mail);
  await client.close();
  expect(server.received.at(-1)).toMatchObject({ from: "a@example.org", to: ["b@example.org"] });
});
