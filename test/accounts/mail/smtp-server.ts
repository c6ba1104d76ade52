import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";

export type Received = { readonly from: string; readonly to: readonly string[]; readonly text: string };

export type SmtpServer = {
  readonly url: string;
  readonly received: readonly Received[];
  /** Refuses the next few mails for the time being (RFC 5321, 451). */
  refuse(times: number): void;
  close(): Promise<void>;
};

/** Starts a server with the part of RFC 5321 that a client of plain mails needs. */
export async function startSmtpServer(): Promise<SmtpServer> {
  const received: Received[] = [];
  const sockets = new Set<Socket>();
  let refusals = 0;

  const serve = async (socket: Socket) => {
    const say = (line: string) => socket.write(`${line}\r\n`);
    let envelope = { from: "", to: [] as string[] };
    let body: string[] | null = null;
    say("220 test");
    for await (const line of linesOf(socket)) {
      if (body) {
        if (line !== ".") body.push(line.replace(/^\./, ""));
        else {
          received.push({ ...envelope, text: body.join("\n") });
          envelope = { from: "", to: [] };
          body = null;
          say("250 taken");
        }
        continue;
      }
      const [word = ""] = line.toUpperCase().split(/[\s:]/);
      const address = /<(.*)>/.exec(line)?.[1] ?? "";
      if (word === "MAIL") envelope = { from: address, to: [] };
      if (word === "RCPT") envelope.to.push(address);
      if (word === "DATA" && refusals-- > 0) say("451 later");
      else if (word === "DATA") {
        body = [];
        say("354 go on");
      } else if (word === "QUIT") {
        say("221 bye");
        socket.end();
      } else say("250 ok");
    }
  };

  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    serve(socket).catch(() => {});
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `smtp://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    refuse: (times) => {
      refusals = times;
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

async function* linesOf(socket: Socket): AsyncGenerator<string> {
  let rest = "";
  for await (const chunk of socket) {
    const lines = (rest + String(chunk)).split("\r\n");
    rest = lines.pop()!;
    yield* lines;
  }
}
