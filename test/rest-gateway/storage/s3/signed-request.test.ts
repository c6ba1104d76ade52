import { createHash, createHmac } from "node:crypto";
import { describe, expect, test } from "vitest";
import { useFolder } from "../../../fixture.ts";
import { useService } from "../../../serve.ts";

const KEY = "key-of-the-server";
const SECRET_KEY = "secret-of-the-server";

const folder = useFolder("signed-s3-");
const service = useService({
  sql: "insert into storage.buckets (id, name) values ('main', 'main')",
  settings: {
    STORAGE_DIR: folder,
    S3_PROTOCOL_ACCESS_KEY_ID: KEY,
    S3_PROTOCOL_ACCESS_KEY_SECRET: SECRET_KEY,
  },
});

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
const hmac = (key: Buffer | string, text: string) => createHmac("sha256", key).update(text).digest();

type Signed = {
  readonly method: string;
  readonly path: string;
  readonly query?: string;
  readonly body?: string;
  /** The signature covers these in place of the header Host and of the path that are sent. */
  readonly signedHost: string;
  readonly signedPath: string;
};

async function send({ method, path, query = "", body = "", signedHost, signedPath }: Signed): Promise<Response> {
  const date = new Date().toISOString().replace(/[-:]|\.\d+/g, "");
  const scope = `${date.slice(0, 8)}/us-east-1/s3/aws4_request`;
  const digest = sha256(body);
  const names = "host;x-amz-content-sha256;x-amz-date";
  const headers = `host:${signedHost}\nx-amz-content-sha256:${digest}\nx-amz-date:${date}\n`;
  const canonical = [method, signedPath, query, headers, names, digest].join("\n");
  const key = scope.split("/").reduce<Buffer>(hmac, Buffer.from(`AWS4${SECRET_KEY}`));
  const signature = hmac(key, `AWS4-HMAC-SHA256\n${date}\n${scope}\n${sha256(canonical)}`).toString("hex");
  return fetch(`${service.url}${path}${query && `?${query}`}`, {
    method,
    headers: {
      Authorization: `AWS4-HMAC-SHA256 Credential=${KEY}/${scope},SignedHeaders=${names},Signature=${signature}`,
      "x-amz-content-sha256": digest,
      "x-amz-date": date,
    },
    ...(body && { body }),
  });
}

const codeOf = async (response: Response) => /<Code>(\w+)/.exec(await response.text())?.[1] ?? null;

describe("s3cmd, which takes the path of its endpoint for a part of the host", () => {
  const prefix = "/storage/v1/s3";
  const sendAs = (method: string, path: string, more: Partial<Signed> = {}) => {
    const signedHost = `${new URL(service.url).host}${prefix}`;
    return send({ method, path: `${prefix}${path}`, signedHost, signedPath: path, ...more });
  };

  test("lists buckets, and writes and reads objects", async () => {
    const list = await sendAs("GET", "/");
    expect([list.status, await list.text()]).toEqual([200, expect.stringContaining("<Name>main</Name>")]);
    expect((await sendAs("PUT", "/main/a%20b", { body: "Hello" })).status).toBe(200);
    expect(await (await sendAs("GET", "/main/a%20b")).text()).toBe("Hello");
    const listed = await sendAs("GET", "/main/", { query: "delimiter=%2F" });
    expect([listed.status, await listed.text()]).toEqual([200, expect.stringContaining("<Key>a b</Key>")]);
  });

  test("has no signature for another host, path or method", async () => {
    const { host } = new URL(service.url);
    await sendAs("PUT", "/main/x", { body: "Hello" });
    for (const more of [
      { signedHost: host },
      { signedHost: `example.org${prefix}` },
      { signedPath: "/main/y" },
      { signedPath: `${prefix}/main/x` },
      { signedHost: `${host}/storage/v1`, signedPath: "/s3/main/x" },
    ]) {
      const response = await sendAs("GET", "/main/x", more);
      expect([more, response.status, await codeOf(response)]).toEqual([more, 403, "SignatureDoesNotMatch"]);
    }
  });
});

test("signatures of version 2 are refused by name, in headers and addresses", async () => {
  const address = `${service.url}/storage/v1/s3/main/x`;
  const responses = [
    await fetch(address, { headers: { Authorization: `AWS ${KEY}:c2lnbmF0dXJl`, Date: new Date().toUTCString() } }),
    await fetch(`${address}?AWSAccessKeyId=${KEY}&Expires=2000000000&Signature=c2lnbmF0dXJl`),
  ];
  for (const response of responses) {
    const text = await response.text();
    expect([response.status, text]).toEqual([400, expect.stringContaining("<Code>InvalidRequest</Code>")]);
    expect(text).toContain("AWS4-HMAC-SHA256");
  }
});
