import { execFile } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import jwt from "jsonwebtoken";
import { beforeAll, expect, test } from "vitest";
import { WebSocket } from "ws";
import { useClient, useDatabase } from "../database.ts";
import { REPOSITORY } from "../repository.ts";
import { SECRET } from "../secret.ts";
import { useService } from "../serve.ts";
import { until } from "../until.ts";
import { ADDRESS } from "./five-minutes.ts";

const BLOCK = /^```(json sent|json received|sql|sh)\n(.*?)^```$/gms;
const TABLE = "templates/blank/db/migrations/current/0010-notes.sql";
const KEY = jwt.sign({ role: "anon" }, SECRET);

const database = useDatabase({ template: "platform" });
const owner = useClient(database.ownerUrl);
beforeAll(async () => {
  await owner.query(await readFile(join(REPOSITORY, TABLE), "utf8"));
});
const service = useService({ database, settings: { BASE_SCHEMA: "platform" } });

/** True if the message is the published one, in which … stands for any text. */
function isAsShown(shown: unknown, message: unknown): boolean {
  if (shown === "…") return typeof message === "string";
  if (typeof shown !== "object" || shown === null || typeof message !== "object" || message === null)
    return shown === message;
  const [names, others] = [Object.keys(shown), Object.keys(message)];
  return (
    names.length === others.length &&
    names.every((name) => isAsShown(shown[name as keyof typeof shown], message[name as keyof typeof message]))
  );
}

test("the socket answers each message with those that the page shows", async () => {
  const page = await readFile(join(REPOSITORY, "docs/realtime-messages.md"), "utf8");
  const socket = new WebSocket(`${service.url.replace("http", "ws")}/realtime/v1/websocket?apikey=${KEY}&vsn=1.0.0`);
  const messages: unknown[] = [];
  socket.on("message", (data) => messages.push(JSON.parse(String(data))));
  await once(socket, "open");
  let received = 0;
  for (const [, kind, text] of page.matchAll(BLOCK)) {
    if (kind === "sql") await owner.query(text!);
    else if (kind === "json sent") socket.send(text!.replace("TOKEN", KEY));
    else if (kind === "sh") {
      const env = { PATH: process.env.PATH, KEY };
      const { stdout } = await promisify(execFile)("bash", ["-c", text!.replace(ADDRESS, service.url)], { env });
      expect(stdout).toBe("202\n");
    } else {
      const shown = JSON.parse(text!);
      const find = () => messages.findIndex((message) => isAsShown(shown, message));
      await until(async () => find() >= 0);
      messages.splice(find(), 1);
      received += 1;
    }
  }
  socket.close();
  expect(received).toBeGreaterThan(14);
});
