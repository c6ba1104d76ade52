import { createHash, createHmac } from "node:crypto";
import { once } from "node:events";
import { readdir, rm } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import aws4 from "aws4";
import { beforeEach, describe, expect, test } from "vitest";
import { useClient, useDatabase } from "../../../database.ts";
import { useFolder } from "../../../fixture.ts";
import { useService } from "../../../serve.ts";
import { until } from "../../../until.ts";

// These send bodies that no SDK sends, byte by byte: invalid ones are refused as S3 refuses them, and leave no row and no file.

const CREDENTIALS = { accessKeyId: "key-of-the-server", secretAccessKey: "secret-of-the-server" };
const CONTENT = Buffer.from("a content of two chunks");
const UNSIGNED = "STREAMING-UNSIGNED-PAYLOAD-TRAILER";
const SIGNED = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD";
const SIGNED_TRAILER = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER";

const sha256 = (data: Buffer | string) => createHash("sha256").update(data).digest("hex");
const base64 = (hex: string) => Buffer.from(hex, "hex").toString("base64");
const crcOf = (content: Buffer) => base64(crc32(content).toString(16).padStart(8, "0"));
const CRC32 = crcOf(CONTENT);
const OTHER_CRC32 = crcOf(Buffer.from("other"));
const SHA256 = base64(sha256(CONTENT));
const OTHER_SHA256 = base64(sha256("other"));

const folder = useFolder("raw-s3-");
const database = useDatabase({ sql: "insert into storage.buckets (id, name) values ('main', 'main')" });
const owner = useClient(database.ownerUrl);
const service = useService({
  database,
  settings: {
    STORAGE_DIR: folder,
    S3_PROTOCOL_ACCESS_KEY_ID: CREDENTIALS.accessKeyId,
    S3_PROTOCOL_ACCESS_KEY_SECRET: CREDENTIALS.secretAccessKey,
  },
});

beforeEach(() => owner.query("delete from storage.objects; delete from content_service.files"));

/** The signatures of a body in chunks, each of which covers the one before. */
type Signer = { readonly chunk: (data: Buffer) => string; readonly trailer: (lines: string) => string };
type Upload = {
  readonly sha256: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: (signer: Signer) => string;
  /** Bytes that are announced and not sent. */
  readonly missing?: number;
};

function signerOf({ seed, date }: { readonly seed: string; readonly date: string }): Signer {
  const day = date.slice(0, 8);
  const hmac = (key: Buffer | string, text: string) => createHmac("sha256", key).update(text).digest();
  const key = [day, "x", "s3", "aws4_request"].reduce<Buffer>(hmac, Buffer.from(`AWS4${CREDENTIALS.secretAccessKey}`));
  let previous = seed;
  const sign = (kind: string, ...more: string[]) => {
    const text = [`AWS4-HMAC-SHA256-${kind}`, date, `${day}/x/s3/aws4_request`, previous, ...more].join("\n");
    previous = hmac(key, text).toString("hex");
    return previous;
  };
  return {
    chunk: (data) => sign("PAYLOAD", sha256(""), sha256(data)),
    trailer: (lines) => sign("TRAILER", sha256(lines)),
  };
}

/** The request as it is written to the socket. */
function writeRequest({ sha256: signed, headers = {}, body, missing = 0 }: Upload): string {
  const { host, pathname } = new URL(`${service.url}/storage/v1/s3/main/a`);
  const request = aws4.sign(
    {
      ...{ host, path: pathname, method: "PUT", service: "s3", region: "x" },
      headers: { "x-amz-content-sha256": signed, ...headers },
    },
    CREDENTIALS,
  );
  const sent = Object.entries(request.headers!).map(([name, value]) => `${name}: ${value}\r\n`);
  const date = String(request.headers!["X-Amz-Date"]);
  const seed = String(request.headers!.Authorization).slice(-64);
  const content = body(signerOf({ seed, date }));
  const length = Buffer.byteLength(content, "latin1") + missing;
  return `PUT ${pathname} HTTP/1.1\r\n${sent.join("")}Content-Length: ${length}\r\nConnection: close\r\n\r\n${content}`;
}

function openSocket() {
  const { hostname, port } = new URL(service.url);
  return connect(Number(port), hostname);
}

async function send(upload: Upload): Promise<readonly [status: number, code: string | null]> {
  const socket = openSocket();
  socket.write(writeRequest(upload), "latin1");
  let text = "";
  for await (const piece of socket) text += piece;
  return [Number(text.split(" ")[1]), /<Code>(\w+)<\/Code>/.exec(text)?.[1] ?? null];
}

/** Objects, contents and files. */
async function leftovers(): Promise<readonly unknown[]> {
  const rows = await owner.query("select name from storage.objects union all select hash from content_service.files");
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return [...rows.rows, ...entries.filter((entry) => entry.isFile()).map(({ name }) => name)];
}

/** Posts XML, or any body, to an address below the bucket. */
async function postXml(address: string, body: string | Buffer) {
  const { host, pathname, search } = new URL(`${service.url}/storage/v1/s3/main${address}`);
  const headers = { "x-amz-content-sha256": sha256(body) };
  const { headers: signed } = aws4.sign(
    { host, path: pathname + search, method: "POST", service: "s3", region: "x", headers },
    CREDENTIALS,
  );
  const response = await fetch(`${service.url}/storage/v1/s3/main${address}`, {
    method: "POST",
    headers: signed as Record<string, string>,
    body,
  });
  return { status: response.status, text: await response.text() };
}

const [FIRST, SECOND] = [CONTENT.subarray(0, 10), CONTENT.subarray(10)];
const chunk = (data: Buffer, signature?: string) =>
  `${data.length.toString(16)}${signature === undefined ? "" : `;chunk-signature=${signature}`}\r\n${data.toString("latin1")}\r\n`;
const CHUNKS = chunk(FIRST) + chunk(SECOND);
const LENGTH = { "x-amz-decoded-content-length": String(CONTENT.length) };
const announce = (name: string) => ({ ...LENGTH, "x-amz-trailer": `x-amz-checksum-${name}` });

const unsigned = (announced: string, end: string, headers: Upload["headers"] = announce(announced)): Upload => ({
  sha256: UNSIGNED,
  headers,
  body: () => `${CHUNKS}${end}`,
});
const withTrailer = (name: string, value: string, announced = name) =>
  unsigned(announced, `0\r\nx-amz-checksum-${name}:${value}\r\n\r\n`);

/** The trailer is right. */
const withBoth = (inHeader: string) =>
  unsigned("crc32", `0\r\nx-amz-checksum-crc32:${CRC32}\r\n\r\n`, {
    ...announce("crc32"),
    "x-amz-checksum-crc32": inHeader,
  });

const signed = (body: Upload["body"]): Upload => ({ sha256: SIGNED, headers: LENGTH, body });
const lastOf = ({ chunk: sign }: Signer) => `0;chunk-signature=${sign(Buffer.alloc(0))}\r\n`;
const signedChunks = (signer: Signer) => chunk(FIRST, signer.chunk(FIRST)) + chunk(SECOND, signer.chunk(SECOND));
const withSignedTrailer = (value: string, change: (signature: string) => string): Upload => ({
  sha256: SIGNED_TRAILER,
  headers: announce("crc32"),
  body(signer) {
    const line = `x-amz-checksum-crc32:${value}`;
    const start = `${signedChunks(signer)}${lastOf(signer)}${line}\r\n`;
    return `${start}${change(`x-amz-trailer-signature:${signer.trailer(`${line}\n`)}\r\n`)}\r\n`;
  },
});
const whole = (headers: Readonly<Record<string, string>>, hash = sha256(CONTENT)): Upload => ({
  sha256: hash,
  headers,
  body: () => CONTENT.toString("latin1"),
});
const ZEROS = "0".repeat(64);

const ACCEPTED: readonly (readonly [string, Upload])[] = [
  ["a CRC32 behind unsigned chunks", withTrailer("crc32", CRC32)],
  ["a SHA256 behind unsigned chunks", withTrailer("sha256", SHA256)],
  ["a CRC32 in the headers and the same in the trailer", withBoth(CRC32)],
  ["signed chunks", signed((signer) => `${signedChunks(signer)}${lastOf(signer)}\r\n`)],
  ["signed chunks and a signed trailer", withSignedTrailer(CRC32, (line) => line)],
  ["a SHA256 in the headers", whole({ "x-amz-checksum-sha256": SHA256 })],
];

const REFUSED: readonly (readonly [string, number, string, Upload])[] = [
  ["a wrong CRC32 in the trailer", 400, "BadDigest", withTrailer("crc32", OTHER_CRC32)],
  ["a wrong SHA256 in the trailer", 400, "BadDigest", withTrailer("sha256", OTHER_SHA256)],
  [
    "checksums of two algorithms",
    400,
    "InvalidRequest",
    whole({ "x-amz-checksum-crc32": CRC32, "x-amz-checksum-sha256": SHA256 }),
  ],
  ["a trailer of an unknown algorithm", 400, "InvalidRequest", withTrailer("crc16", CRC32)],
  ["a wrong CRC32C in the trailer", 400, "BadDigest", withTrailer("crc32c", CRC32)],
  ["a trailer that is no checksum", 400, "InvalidRequest", withTrailer("crc32", "nonsense")],
  ["another CRC32 in the trailer than in the headers", 400, "InvalidRequest", withBoth(OTHER_CRC32)],
  ["an announced trailer that does not come", 400, "MalformedTrailerError", unsigned("crc32", "0\r\n\r\n")],
  ["another trailer than announced", 400, "MalformedTrailerError", withTrailer("sha256", SHA256, "crc32")],
  [
    "a trailer twice",
    400,
    "MalformedTrailerError",
    unsigned("crc32", `0\r\n${`x-amz-checksum-crc32:${CRC32}\r\n`.repeat(2)}\r\n`),
  ],
  [
    "a trailer that was not announced",
    400,
    "MalformedTrailerError",
    unsigned("", `0\r\nx-amz-checksum-crc32:${CRC32}\r\n\r\n`, { ...LENGTH, "x-amz-trailer": "" }),
  ],
  ["a trailer without a name", 400, "MalformedTrailerError", unsigned("crc32", "0\r\nnonsense\r\n\r\n")],
  [
    "bytes behind the trailer",
    400,
    "MalformedTrailerError",
    unsigned("crc32", `0\r\nx-amz-checksum-crc32:${CRC32}\r\n\r\nmore`),
  ],
  ["no last chunk", 400, "IncompleteBody", unsigned("crc32", "")],
  ["a chunk that ends early", 400, "IncompleteBody", unsigned("crc32", "ff\r\nshort")],
  ["a chunk that is longer than its size", 400, "IncompleteBody", unsigned("crc32", "1\r\ntwo\r\n0\r\n\r\n")],
  ["a size that is no number", 400, "IncompleteBody", unsigned("crc32", "none\r\n\r\n")],
  [
    "a length that is too small",
    400,
    "IncompleteBody",
    unsigned("", "0\r\n\r\n", { "x-amz-decoded-content-length": "5", "x-amz-trailer": "" }),
  ],
  [
    "a length that is too large",
    400,
    "IncompleteBody",
    unsigned("", "0\r\n\r\n", { "x-amz-decoded-content-length": "5000", "x-amz-trailer": "" }),
  ],
  ["no length", 411, "MissingContentLength", { sha256: UNSIGNED, body: () => `${CHUNKS}0\r\n\r\n` }],
  [
    "a wrong signature of a chunk",
    403,
    "SignatureDoesNotMatch",
    signed((signer) => `${chunk(FIRST, ZEROS)}${chunk(SECOND, signer.chunk(SECOND))}${lastOf(signer)}\r\n`),
  ],
  [
    "a chunk with the signature of another content",
    403,
    "SignatureDoesNotMatch",
    signed(
      (signer) => `${chunk(FIRST, signer.chunk(SECOND))}${chunk(SECOND, signer.chunk(SECOND))}${lastOf(signer)}\r\n`,
    ),
  ],
  [
    "chunks in another order",
    403,
    "SignatureDoesNotMatch",
    signed((signer) => {
      const [one, two] = [chunk(FIRST, signer.chunk(FIRST)), chunk(SECOND, signer.chunk(SECOND))];
      return `${two}${one}${lastOf(signer)}\r\n`;
    }),
  ],
  ["chunks without a signature", 403, "SignatureDoesNotMatch", signed(() => `${CHUNKS}0\r\n\r\n`)],
  [
    "a wrong signature of the last chunk",
    403,
    "SignatureDoesNotMatch",
    signed((signer) => `${signedChunks(signer)}0;chunk-signature=${ZEROS}\r\n\r\n`),
  ],
  ["signed chunks without the last", 400, "IncompleteBody", signed(signedChunks)],
  ["a wrong checksum with a right signature", 400, "BadDigest", withSignedTrailer(OTHER_CRC32, (line) => line)],
  [
    "a wrong signature of the trailer",
    403,
    "SignatureDoesNotMatch",
    withSignedTrailer(CRC32, () => `x-amz-trailer-signature:${ZEROS}\r\n`),
  ],
  ["no signature of the trailer", 403, "SignatureDoesNotMatch", withSignedTrailer(CRC32, () => "")],
  ["a wrong SHA256 in the headers", 400, "BadDigest", whole({ "x-amz-checksum-sha256": OTHER_SHA256 })],
  ["a checksum in the headers that is none", 400, "InvalidRequest", whole({ "x-amz-checksum-crc32": "AAAA" })],
  ["a trailer without chunks", 400, "MalformedTrailerError", whole({ "x-amz-trailer": "x-amz-checksum-crc32" })],
  ["another content than was signed", 400, "XAmzContentSHA256Mismatch", whole({}, sha256("other"))],
  ["an unknown signature of the body", 400, "InvalidArgument", { ...withTrailer("crc32", CRC32), sha256: "STREAMING" }],
];

describe("uploads by raw requests", () => {
  test.each(ACCEPTED)("%s: kept", async (_, upload) => {
    expect(await send(upload)).toEqual([200, null]);
    const { rows } = await owner.query("select name, content from storage.objects");
    expect(rows).toEqual([{ name: "a", content: sha256(CONTENT) }]);
    await owner.query("delete from storage.objects; delete from content_service.files");
    for (const entry of await readdir(folder, { recursive: true, withFileTypes: true }))
      if (entry.isFile()) await rm(join(entry.parentPath, entry.name));
  });

  test.each(REFUSED)("%s: %i %s", async (_, status, code, upload) => {
    expect(await send(upload)).toEqual([status, code]);
    expect(await leftovers()).toEqual([]);
  });

  test.each([
    ["a chunk", { ...unsigned("crc32", "ff\r\nshort"), missing: 250 }],
    ["the trailer", { ...unsigned("crc32", "0\r\nx-amz-checksum"), missing: 20 }],
    ["a signed body", { ...whole({}), missing: 20 }],
  ])("a connection that ends within %s leaves nothing", async (_, upload) => {
    const socket = openSocket();
    socket.write(writeRequest(upload), "latin1");
    await until(async () =>
      (await readdir(folder, { recursive: true, withFileTypes: true })).some((entry) => entry.isFile()),
    );
    socket.destroy();
    await once(socket, "close");
    await expect.poll(async () => (await leftovers()).length === 0).toBe(true);
  });
});

describe("the texts of XML", () => {
  const NAME = `it's "a" <b> & 😀.txt`;
  const add = (...names: string[]) =>
    owner.query("insert into storage.objects (bucket_id, name) select 'main', unnest($1::text[])", [names]);
  const deleteKeys = (...keys: string[]) =>
    postXml("?delete", `<Delete>${keys.map((key) => `<Object><Key>${key}</Key></Object>`).join("")}</Delete>`);
  const namesLeft = async () =>
    (await owner.query("select name from storage.objects order by name")).rows.map(({ name }) => name);

  test.each([
    ["names of characters", "it&apos;s &quot;a&quot; &lt;b&gt; &amp; 😀.txt"],
    ["decimal numbers", "it&#39;s &#34;a&#34; &#60;b&#62; &#38; &#128512;.txt"],
    ["hexadecimal numbers", "it&#x27;s &#x22;a&#x22; &#x3C;b&#x3e; &#x026; &#x1F600;.txt"],
    ["no escape", `it's <![CDATA["a" <b> &]]> 😀.txt`],
  ])("may be written by %s", async (_, key) => {
    await add(NAME, "kept");
    const { status, text } = await deleteKeys(key);
    expect([status, text]).toEqual([
      200,
      expect.stringContaining("<Key>it&apos;s &quot;a&quot; &lt;b&gt; &amp; 😀.txt</Key>"),
    ]);
    expect(await namesLeft()).toEqual(["kept"]);
  });

  test("are decoded once", async () => {
    await add("a&#39;", "a'", "b&amp;", "b&", "c&#39;");
    expect((await deleteKeys("a&amp;#39;", "b&#38;amp;", "<![CDATA[c&#39;]]>")).status).toBe(200);
    expect(await namesLeft()).toEqual(["a'", "b&"]);
  });

  test.each([
    ["an unknown name", "a&nbsp;"],
    ["the name of a member of JavaScript's objects", "a&constructor;"],
    ["a reference without an end", "a&amp"],
    ["half of a surrogate pair", "a&#xD800;"],
    ["a character that XML has not", "a&#1;"],
    ["the number 0", "a&#0;"],
    ["a number above all characters", "a&#x110000;"],
    ["a huge number", `a&#${"9".repeat(400)};`],
    ["a NUL", "a\0"],
    ["a control character", "a\x01"],
    ["elements in too many others", `${"<a>".repeat(500)}${"</a>".repeat(500)}`],
    ["elements with names of JavaScript", "<__proto__>a</__proto__>"],
  ])("are refused with %s", async (_, key) => {
    await add("a", "b");
    const { status, text } = await deleteKeys("b", key);
    expect([status, /<Code>(\w+)</.exec(text)?.[1]]).toEqual([400, "MalformedXML"]);
    expect(await namesLeft()).toEqual(["a", "b"]);
  });

  test("are refused with a document type", async () => {
    await add("b");
    const body = `<!DOCTYPE Delete [<!ENTITY a "b">]><Delete><Object><Key>&a;</Key></Object></Delete>`;
    expect(await postXml("?delete", body)).toMatchObject({
      status: 400,
      text: expect.stringContaining("MalformedXML"),
    });
    expect(await namesLeft()).toEqual(["b"]);
  });

  test("are refused if they are not in UTF-8", async () => {
    await add("\uFFFD");
    const body = Buffer.from("<Delete><Object><Key>\xFF</Key></Object></Delete>", "latin1");
    expect(await postXml("?delete", body)).toMatchObject({ status: 400 });
    expect(await namesLeft()).toEqual(["\uFFFD"]);
  });

  test("name the parts of an upload as clients in Go write their tags", async () => {
    const { text } = await postXml("/parts?uploads", "");
    const id = /<UploadId>(.+)<\/UploadId>/.exec(text)![1]!;
    const { host, pathname } = new URL(`${service.url}/storage/v1/s3/main/parts`);
    const path = `${pathname}?partNumber=1&uploadId=${id}`;
    const signed = aws4.sign(
      { host, path, method: "PUT", service: "s3", region: "x", headers: { "x-amz-content-sha256": sha256(CONTENT) } },
      CREDENTIALS,
    );
    const headers = signed.headers as Record<string, string>;
    const part = await fetch(`http://${host}${path}`, { method: "PUT", headers, body: CONTENT });
    const tag = part.headers.get("etag")!.replaceAll('"', "&#34;");
    const body = `<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>${tag}</ETag></Part></CompleteMultipartUpload>`;
    expect((await postXml(`/parts?uploadId=${id}`, body)).status).toBe(200);
    expect(await namesLeft()).toEqual(["parts"]);
  });

  test("that are sent are XML, whatever is listed", async () => {
    await add("a\uFFFEb");
    const { host, pathname } = new URL(`${service.url}/storage/v1/s3/main`);
    const list = async (query: string) => {
      const path = `${pathname}?${query}`;
      const headers = { "x-amz-content-sha256": sha256("") };
      const signed = aws4.sign({ host, path, method: "GET", service: "s3", region: "x", headers }, CREDENTIALS);
      const response = await fetch(`http://${host}${path}`, { headers: signed.headers as Record<string, string> });
      return response.text();
    };
    expect(await list("list-type=2")).toContain("<Key>a\uFFFDb</Key>");
    expect(await list("encoding-type=url&list-type=2")).toContain("<Key>a%EF%BF%BEb</Key>");
    expect(await list("list-type=2&prefix=a%01%0D")).toContain("<Prefix>a\uFFFD&#xD;</Prefix>");
  });
});
