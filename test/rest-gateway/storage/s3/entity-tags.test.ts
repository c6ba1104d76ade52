import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { mayNamePart, PartTags, tagOf } from "../../../../rest-gateway/storage/s3/entity-tags.ts";

const md5 = (data: string | Buffer) => createHash("md5").update(data).digest();
const SHA256 = createHash("sha256").update("one").digest("hex");
const PART = { number: 1, content: SHA256, bytes: 3, stored_at: "2026-01-01" };

async function* piecesOf(...pieces: string[]) {
  for (const piece of pieces) yield Buffer.from(piece);
}

async function readAll(pieces: AsyncIterable<Buffer>): Promise<string> {
  let text = "";
  for await (const piece of pieces) text += piece;
  return text;
}

test.each([
  ["an upload through S3", `"${md5("one").toString("hex")}"`, null],
  ["an upload in parts", `"${md5("one").toString("hex")}-2"`, null],
  ["another upload", `"${SHA256}"`, SHA256],
  ["a text that somebody has written", '"x" <y>', SHA256],
])("the tag of %s", (_, eTag, content) => {
  expect(tagOf({ content: SHA256, metadata: { eTag } })).toBe(content === null ? eTag : `"${content}"`);
});

test("a part is named by its MD5, which its content must have, or by its SHA-256", async () => {
  const tag = md5("one").toString("hex");
  expect([mayNamePart(tag, PART), mayNamePart(SHA256, PART), mayNamePart("other", PART)]).toEqual([true, true, false]);
  const tags = new PartTags();
  expect(await readAll(tags.read({ ...PART, tag }, piecesOf("o", "ne")))).toBe("one");
  expect(await readAll(tags.read({ ...PART, tag: SHA256 }, piecesOf("two")))).toBe("two");
  expect(tags.finish()).toBe(`"${md5(Buffer.concat([md5("one"), md5("two")])).toString("hex")}-2"`);
  await expect(readAll(tags.read({ ...PART, tag }, piecesOf("two")))).rejects.toMatchObject({ code: "InvalidPart" });
});
