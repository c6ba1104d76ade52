// A receiver of webhooks in a separate process. It responds to every request, and checks that no number of a key is skipped.

import { createServer } from "node:http";

type Payload = { readonly record: { readonly id: number; readonly number: number } };

const lastOfKey = new Map<number, number>();
const counts = { requests: 0, repeated: 0, outOfOrder: 0 };

const server = createServer((request, response) => {
  if (request.method !== "POST") {
    response.end(JSON.stringify(counts));
    return;
  }
  let body = "";
  request.setEncoding("utf8");
  request.on("data", (chunk) => {
    body += chunk;
  });
  request.on("end", () => {
    count(JSON.parse(body));
    response.writeHead(204).end();
  });
});
server.listen(Number(process.env.PORT), "127.0.0.1");

function count({ record: { id, number } }: Payload): void {
  const last = lastOfKey.get(id) ?? 0;
  counts.requests++;
  if (number <= last) counts.repeated++;
  else if (number > last + 1) counts.outOfOrder++;
  lastOfKey.set(id, Math.max(last, number));
}
