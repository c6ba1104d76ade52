import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { crc32 } from "node:zlib";
import * as s3 from "@aws-sdk/client-s3";
import { Upload } from "@aws-sdk/lib-storage";
import { getSignedUrl } from "@aws-sdk/s3-request-presigner";
import jwt from "jsonwebtoken";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { useClient, useDatabase } from "../../../database.ts";
import { useFolder } from "../../../fixture.ts";
import { SECRET } from "../../../secret.ts";
import { useService } from "../../../serve.ts";

// The client of AWS, unmodified, at /storage/v1/s3.

let server: s3.S3Client;
let ada: s3.S3Client;
let bob: s3.S3Client;

const Bucket = "notes";
const CHECKSUMS_OF_CONTENT: Readonly<Record<s3.ChecksumAlgorithm, string>> = {
  CRC32: "/sUwqQ==",
  CRC32C: "Ya91Mw==",
  CRC64NVME: "lhVdXyVQTGE=",
  MD5: "mgNkuembtIDdJeHwKEyFVQ==",
  SHA1: "BA8G/XdAkkeNRQd09bowxdp4rMg=",
  SHA256: "7XACtDnprIRfIjV9giusFERzD722AW0+yUMil7nsn3M=",
  SHA512: "stHShbUZnIX5iNA2ScN+RP093gHl1pxQ/vkGUZYvSBEOk0C2DUmkecTAtT9fB9aQaG3YfSSBk3pRLouF7nxhfw==",
  XXHASH64: "bFsZGjHFqfw=",
  XXHASH3: "VfKzGmrPqmQ=",
  XXHASH128: "kX4SdCdPwZWyei0jiNlWjA==",
};
const tokenOf = (claims: object) => jwt.sign(claims, SECRET, { expiresIn: 3600 });
const md5 = (data: Buffer | string) => createHash("md5").update(data).digest("hex");
const sha256 = (content: string | Buffer) => createHash("sha256").update(content).digest("hex");

function clientWith(credentials: s3.S3ClientConfig["credentials"], more: s3.S3ClientConfig = {}): s3.S3Client {
  return new s3.S3Client({
    endpoint: `${service.url}/storage/v1/s3`,
    region: "eu-central-1",
    forcePathStyle: true,
    maxAttempts: 1,
    credentials: credentials!,
    ...more,
  });
}

function clientOf(claims: object, more: s3.S3ClientConfig = {}): s3.S3Client {
  const token = tokenOf(claims);
  return clientWith({ accessKeyId: "project", secretAccessKey: token, sessionToken: token }, more);
}

const folder = useFolder("s3-");
const database = useDatabase({
  sql: `
    create policy "own folder" on storage.objects to authenticated
      using ((storage.foldername(name))[1] = (select auth.uid())::text)
      with check ((storage.foldername(name))[1] = (select auth.uid())::text);
    create policy "buckets" on storage.buckets for select to authenticated using (id <> 'hidden')`,
});
const owner = useClient(database.ownerUrl);
const service = useService({
  database,
  settings: {
    STORAGE_DIR: folder,
    S3_PROTOCOL_ACCESS_KEY_ID: "key-of-the-server",
    S3_PROTOCOL_ACCESS_KEY_SECRET: "secret-of-the-server",
  },
});
beforeAll(async () => {
  server = clientWith({ accessKeyId: "key-of-the-server", secretAccessKey: "secret-of-the-server" });
  ada = clientOf({ role: "authenticated", sub: "1" });
  bob = clientOf({ role: "authenticated", sub: "2" });
});

beforeEach(async () => {
  await owner.query(`
    delete from content_service.unfinished_uploads; delete from storage.objects; delete from storage.buckets;
    insert into storage.buckets (id, name) values ('notes', 'notes'), ('hidden', 'hidden')`);
});

const put = (client: s3.S3Client, Key: string, Body: NonNullable<s3.PutObjectCommandInput["Body"]>, more = {}) =>
  client.send(new s3.PutObjectCommand({ Bucket, Key, Body, ...more }));
const get = (client: s3.S3Client, Key: string, more = {}) =>
  client.send(new s3.GetObjectCommand({ Bucket, Key, ...more }));
const head = (client: s3.S3Client, Key: string, more = {}) =>
  client.send(new s3.HeadObjectCommand({ Bucket, Key, ...more }));
const textOf = async (found: s3.GetObjectCommandOutput) => (await found.Body!.transformToString()) ?? "";

/** The name and status of the error. */
async function refusal(attempt: Promise<unknown>): Promise<readonly [string, number | undefined]> {
  const error = await attempt.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(s3.S3ServiceException);
  const { name, $metadata } = error as s3.S3ServiceException;
  return [name, $metadata.httpStatusCode];
}

describe("objects", () => {
  test("an object has its content, headers and metadata", async () => {
    const about = {
      ContentType: "text/html; charset=utf-8",
      CacheControl: "max-age=60",
      ContentDisposition: 'attachment; filename="a.html"',
      ContentLanguage: "de",
      Metadata: { author: "Ada", "long-name": "x y" },
    };
    const { ETag } = await put(ada, "1/a b/ü+&.html", "Hello", about);
    expect(ETag).toBe(`"${md5("Hello")}"`);
    for (const found of [await get(ada, "1/a b/ü+&.html"), await head(ada, "1/a b/ü+&.html")]) {
      expect(found).toMatchObject({ ...about, ETag, ContentLength: 5, AcceptRanges: "bytes" });
      expect(found.LastModified).toBeInstanceOf(Date);
    }
    expect(await textOf(await get(ada, "1/a b/ü+&.html"))).toBe("Hello");
  });

  test("a client that asks for a checksum has that of the whole content, and notices a damaged file", async () => {
    await put(ada, "1/x", "Hello");
    const ChecksumSHA256 = Buffer.from(sha256("Hello"), "hex").toString("base64");
    for (const found of [
      await get(ada, "1/x", { ChecksumMode: "ENABLED" }),
      await head(ada, "1/x", { ChecksumMode: "ENABLED" }),
    ])
      expect(found).toMatchObject({ ChecksumSHA256, ChecksumType: "FULL_OBJECT" });
    const part = await get(ada, "1/x", { ChecksumMode: "ENABLED", Range: "bytes=1-2" });
    expect([part.ChecksumSHA256, await textOf(part)]).toEqual([undefined, "el"]);
    expect(
      (
        await fetch(await getSignedUrl(ada, new s3.HeadObjectCommand({ Bucket, Key: "1/x" })), { method: "HEAD" })
      ).headers.get("x-amz-checksum-sha256"),
    ).toBeNull();

    await put(ada, "1/y", "A file that nobody has read");
    const hash = sha256("A file that nobody has read");
    await writeFile(join(folder, hash.slice(0, 2), hash), "A file that someone changed");
    await expect(get(ada, "1/y").then(textOf)).rejects.toThrow(/Checksum mismatch/);
  });

  test("streams are sent in chunks whose checksum is compared", async () => {
    const content = Buffer.alloc(3_000_000, "0123456789");
    await put(ada, "1/stream", Readable.from([content.subarray(0, 99), content.subarray(99)]), {
      ContentLength: content.length,
    });
    expect(sha256(Buffer.from(await (await get(ada, "1/stream")).Body!.transformToByteArray()))).toBe(sha256(content));
    const wrong = put(ada, "1/wrong", "content", { ChecksumCRC32: "AAAAAA==" });
    expect(await refusal(wrong)).toEqual(["BadDigest", 400]);
    expect(await refusal(head(ada, "1/wrong"))).toEqual(["NotFound", 404]);
    const wrongMd5 = put(ada, "1/wrong", "content", { ContentMD5: createHash("md5").update("other").digest("base64") });
    expect(await refusal(wrongMd5)).toEqual(["BadDigest", 400]);
  });

  test.each(["CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256"])(
    "content with a checksum by %s that the client computes is kept",
    async (ChecksumAlgorithm) => {
      await put(ada, `1/${ChecksumAlgorithm}`, "content", { ChecksumAlgorithm });
      expect(await textOf(await get(ada, `1/${ChecksumAlgorithm}`))).toBe("content");
    },
  );

  test.each(Object.entries(CHECKSUMS_OF_CONTENT))(
    "content is compared with its checksum by %s",
    async (algorithm, right) => {
      const sent = { [`Checksum${algorithm}`]: right };
      expect(await put(ada, `1/right ${algorithm}`, "content", sent)).toMatchObject(sent);
      const wrong = Buffer.alloc(Buffer.from(right, "base64").length).toString("base64");
      const refused = put(ada, "1/refused", "content", { [`Checksum${algorithm}`]: wrong });
      expect(await refusal(refused)).toEqual(["BadDigest", 400]);
      expect(await refusal(head(ada, "1/refused"))).toEqual(["NotFound", 404]);
    },
  );

  test("ranges and conditions are those of HTTP", async () => {
    const { ETag } = await put(ada, "1/digits", "0123456789");
    const part = await get(ada, "1/digits", { Range: "bytes=2-4" });
    expect([part.ContentRange, part.ContentLength, await textOf(part)]).toEqual(["bytes 2-4/10", 3, "234"]);
    expect(await textOf(await get(ada, "1/digits", { Range: "bytes=-2" }))).toBe("89");
    const whole = await get(ada, "1/digits", { Range: "bytes=-100" });
    expect([whole.ContentRange, await textOf(whole)]).toEqual(["bytes 0-9/10", "0123456789"]);
    expect(await refusal(get(ada, "1/digits", { Range: "bytes=10-" }))).toEqual(["InvalidRange", 416]);
    expect(await refusal(get(ada, "1/digits", { IfNoneMatch: ETag }))).toEqual(["Unknown", 304]);
    expect(await refusal(get(ada, "1/digits", { IfMatch: '"other"' }))).toEqual(["PreconditionFailed", 412]);
    expect(await textOf(await get(ada, "1/digits", { IfMatch: ETag }))).toBe("0123456789");
    const past = new Date(Date.now() - 3_600_000);
    expect(await refusal(get(ada, "1/digits", { IfUnmodifiedSince: past }))).toEqual(["PreconditionFailed", 412]);
    const renamed = await get(ada, "1/digits", {
      ResponseContentType: "text/csv",
      ResponseContentDisposition: "attachment",
    });
    expect(renamed).toMatchObject({ ContentType: "text/csv", ContentDisposition: "attachment" });
  });

  test("a write replaces nothing where its condition does not hold", async () => {
    const first = await put(ada, "1/x", "one", { IfNoneMatch: "*" });
    expect(await refusal(put(ada, "1/x", "two", { IfNoneMatch: "*" }))).toEqual(["PreconditionFailed", 412]);
    expect(await refusal(put(ada, "1/x", "two", { IfMatch: '"other"' }))).toEqual(["PreconditionFailed", 412]);
    expect(await textOf(await get(ada, "1/x"))).toBe("one");
    await put(ada, "1/x", "two", { IfMatch: first.ETag });
    expect(await textOf(await get(ada, "1/x"))).toBe("two");
    const both = await Promise.allSettled(
      ["three", "four"].map((body) => put(ada, "1/x", body, { IfMatch: `"${md5("two")}"` })),
    );
    expect(both.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  });

  test("a deletion removes nothing where its condition does not hold, or is not known", async () => {
    const { ETag } = await put(ada, "1/x", "one");
    const remove = (more: object) => ada.send(new s3.DeleteObjectCommand({ Bucket, Key: "1/x", ...more }));
    expect(await refusal(remove({ IfMatch: '"other"' }))).toEqual(["PreconditionFailed", 412]);
    const named = { Delete: { Objects: [{ Key: "1/x", ETag }] } };
    expect(await refusal(ada.send(new s3.DeleteObjectsCommand({ Bucket, ...named })))).toEqual(["NotImplemented", 501]);
    expect(await textOf(await get(ada, "1/x"))).toBe("one");
    await remove({ IfMatch: ETag });
    expect(await refusal(head(ada, "1/x"))).toEqual(["NotFound", 404]);
    expect(await refusal(remove({ IfMatch: "*" }))).toEqual(["PreconditionFailed", 412]);
  });

  test("copies keep the metadata or replace it", async () => {
    const { ETag } = await put(ada, "1/ä?x", "one", { ContentType: "text/plain", Metadata: { a: "b" } });
    const CopySource = `${Bucket}/${encodeURIComponent("1/ä?x")}`;
    const copy = (more: object) => ada.send(new s3.CopyObjectCommand({ Bucket, Key: "1/copy", CopySource, ...more }));
    expect((await copy({})).CopyObjectResult!.ETag).toBe(ETag);
    expect(await head(ada, "1/copy")).toMatchObject({ ContentType: "text/plain", Metadata: { a: "b" } });
    await copy({ MetadataDirective: "REPLACE", ContentType: "text/css", Metadata: { c: "d" } });
    expect(await head(ada, "1/copy")).toMatchObject({ ContentType: "text/css", Metadata: { c: "d" } });
    expect(await textOf(await get(ada, "1/copy"))).toBe("one");
    expect(await refusal(copy({ CopySourceIfMatch: '"other"' }))).toEqual(["PreconditionFailed", 412]);
    expect(await refusal(copy({ CopySource: `${Bucket}/1/missing` }))).toEqual(["NoSuchKey", 404]);
  });

  test("objects are deleted one by one and together; what is not there counts as deleted", async () => {
    for (const key of ["1/a", "1/b", "1/c & <d>"]) await put(ada, key, "x");
    await ada.send(new s3.DeleteObjectCommand({ Bucket, Key: "1/a" }));
    await ada.send(new s3.DeleteObjectCommand({ Bucket, Key: "1/a" }));
    const Objects = ["1/b", "1/c & <d>", "1/missing"].map((Key) => ({ Key }));
    const { Deleted, Errors } = await ada.send(new s3.DeleteObjectsCommand({ Bucket, Delete: { Objects } }));
    expect([Deleted!.map(({ Key }) => Key), Errors]).toEqual([["1/b", "1/c & <d>", "1/missing"], undefined]);
    expect((await owner.query("select from storage.objects")).rowCount).toBe(0);
  });

  test("a version is not deleted in place of the object", async () => {
    await put(ada, "1/a", "x");
    const remove = (VersionId: string) =>
      ada.send(new s3.DeleteObjectsCommand({ Bucket, Delete: { Objects: [{ Key: "1/a", VersionId }] } }));
    expect(await refusal(remove("3HL4kqtJvjVBH40Nrjfkd"))).toEqual(["NotImplemented", 501]);
    expect((await head(ada, "1/a")).ContentLength).toBe(1);
    expect((await remove("null")).Deleted).toEqual([{ Key: "1/a" }]);
  });

  test("names that are refused elsewhere are refused here", async () => {
    for (const key of ["1/../x", `1/${"x".repeat(1023)}`, "1/a\tb"])
      expect(await refusal(put(ada, key, "x"))).toEqual(["KeyTooLongError", 400]);
    await put(ada, `1/${"x".repeat(1022)}`, "x");
    await put(ada, "1/folder/", "");
    expect((await head(ada, "1/folder/")).ContentLength).toBe(0);
  });
});

describe("policies", () => {
  test("decide every method", async () => {
    await put(ada, "1/x", "one");
    expect(await refusal(get(bob, "1/x"))).toEqual(["NoSuchKey", 404]);
    expect(await refusal(put(bob, "1/x", "two"))).toEqual(["AccessDenied", 403]);
    expect(await refusal(put(bob, "1/y", "two"))).toEqual(["AccessDenied", 403]);
    await bob.send(new s3.DeleteObjectCommand({ Bucket, Key: "1/x" }));
    const listed = await bob.send(new s3.ListObjectsV2Command({ Bucket }));
    expect(listed.KeyCount).toBe(0);
    const CopySource = `${Bucket}/1/x`;
    expect(await refusal(bob.send(new s3.CopyObjectCommand({ Bucket, Key: "2/x", CopySource })))).toEqual([
      "NoSuchKey",
      404,
    ]);
    expect(await refusal(bob.send(new s3.CreateMultipartUploadCommand({ Bucket, Key: "1/z" })))).toEqual([
      "AccessDenied",
      403,
    ]);
    expect(await textOf(await get(ada, "1/x"))).toBe("one");
    expect(await textOf(await get(server, "1/x"))).toBe("one");
  });

  test("what may be read and not deleted is reported", async () => {
    await owner.query(`create policy readers on storage.objects for select to authenticated using (true)`);
    try {
      await put(ada, "1/x", "one");
      expect(await refusal(bob.send(new s3.DeleteObjectCommand({ Bucket, Key: "1/x" })))).toEqual([
        "AccessDenied",
        403,
      ]);
      const { Errors } = await bob.send(new s3.DeleteObjectsCommand({ Bucket, Delete: { Objects: [{ Key: "1/x" }] } }));
      expect(Errors).toEqual([{ Key: "1/x", Code: "AccessDenied", Message: "Access Denied" }]);
    } finally {
      await owner.query("drop policy readers on storage.objects");
    }
  });

  test("limits of the bucket hold", async () => {
    await owner.query("update storage.buckets set file_size_limit = 3, allowed_mime_types = '{image/*}'");
    expect(await refusal(put(ada, "1/x", "four", { ContentType: "image/png" }))).toEqual(["EntityTooLarge", 400]);
    expect(await refusal(put(ada, "1/x", "x", { ContentType: "text/plain" }))).toEqual(["InvalidRequest", 400]);
    await put(ada, "1/x", "abc", { ContentType: "image/png" });
  });
});

describe("buckets", () => {
  test("are listed, made, found and deleted", async () => {
    const { Buckets } = await ada.send(new s3.ListBucketsCommand({}));
    expect(Buckets!.map(({ Name }) => Name)).toEqual(["notes"]);
    await server.send(new s3.CreateBucketCommand({ Bucket: "new" }));
    expect(await refusal(server.send(new s3.CreateBucketCommand({ Bucket: "new" })))).toEqual([
      "BucketAlreadyExists",
      409,
    ]);
    await server.send(new s3.HeadBucketCommand({ Bucket: "new" }));
    expect(await refusal(ada.send(new s3.HeadBucketCommand({ Bucket: "hidden" })))).toEqual(["NotFound", 404]);
    expect(await refusal(ada.send(new s3.CreateBucketCommand({ Bucket: "mine" })))).toEqual(["AccessDenied", 403]);
    await server.send(new s3.PutObjectCommand({ Bucket: "new", Key: "x", Body: "x" }));
    expect(await refusal(server.send(new s3.DeleteBucketCommand({ Bucket: "new" })))).toEqual(["BucketNotEmpty", 409]);
    await server.send(new s3.DeleteObjectCommand({ Bucket: "new", Key: "x" }));
    await server.send(new s3.DeleteBucketCommand({ Bucket: "new" }));
    expect(await refusal(server.send(new s3.HeadBucketCommand({ Bucket: "new" })))).toEqual(["NotFound", 404]);
    await server.send(new s3.GetBucketLocationCommand({ Bucket }));
    expect((await server.send(new s3.GetBucketVersioningCommand({ Bucket }))).Status).toBeUndefined();
  });

  test("are listed in pages, as folders and as a whole, by both versions", async () => {
    const keys = ["1/a", "1/b/1", "1/b/2", "1/c", "1/ü & <x>"];
    for (const key of keys) await put(ada, key, "x");
    const all = async (more: object) => {
      const pages = s3.paginateListObjectsV2({ client: ada }, { Bucket, MaxKeys: 2, ...more });
      const found: (string | undefined)[] = [];
      for await (const page of pages) {
        expect(page.KeyCount).toBeLessThanOrEqual(2);
        found.push(
          ...(page.Contents ?? []).map(({ Key }) => Key),
          ...(page.CommonPrefixes ?? []).map(({ Prefix }) => Prefix),
        );
      }
      return found.sort();
    };
    expect(await all({})).toEqual(keys);
    expect(await all({ Prefix: "1/b/" })).toEqual(["1/b/1", "1/b/2"]);
    expect(await all({ Prefix: "1/", Delimiter: "/" })).toEqual(["1/a", "1/b/", "1/c", "1/ü & <x>"]);
    expect(await all({ StartAfter: "1/b/1" })).toEqual(["1/b/2", "1/c", "1/ü & <x>"]);
    await put(ada, "1/b/", "");
    for (const more of [{}, { StartAfter: "1/b" }, { MaxKeys: 1 }])
      expect(await all({ Prefix: "1/b/", Delimiter: "/", ...more })).toEqual(["1/b/", "1/b/1", "1/b/2"]);
    expect(await all({ Prefix: "1/b/", Delimiter: "/", StartAfter: "1/b/" })).toEqual(["1/b/1", "1/b/2"]);
    expect(await all({ Prefix: "1/", Delimiter: "/", StartAfter: "1/b/" })).toEqual(["1/c", "1/ü & <x>"]);
    await ada.send(new s3.DeleteObjectCommand({ Bucket, Key: "1/b/" }));
    const first = await ada.send(new s3.ListObjectsCommand({ Bucket, MaxKeys: 3 }));
    expect([first.IsTruncated, first.Contents!.length]).toEqual([true, 3]);
    const rest = await ada.send(new s3.ListObjectsCommand({ Bucket, Marker: first.NextMarker }));
    expect(rest.Contents!.map(({ Key, Size }) => [Key, Size])).toEqual([
      ["1/c", 1],
      ["1/ü & <x>", 1],
    ]);
    expect(await refusal(ada.send(new s3.ListObjectsV2Command({ Bucket: "missing" })))).toEqual(["NoSuchBucket", 404]);
    const encoded = await ada.send(new s3.ListObjectsV2Command({ Bucket, EncodingType: "url", Prefix: "1/ü" }));
    expect(encoded.Contents![0]!.Key).toBe("1/%C3%BC%20%26%20%3Cx%3E");
  });

  test("what S3 has and the service has not is refused, and changes nothing", async () => {
    await put(ada, "1/x", "one");
    const refused = [
      new s3.PutObjectTaggingCommand({ Bucket, Key: "1/x", Tagging: { TagSet: [{ Key: "a", Value: "b" }] } }),
      new s3.PutObjectAclCommand({ Bucket, Key: "1/x", ACL: "public-read" }),
      new s3.DeleteObjectTaggingCommand({ Bucket, Key: "1/x" }),
      new s3.DeleteBucketPolicyCommand({ Bucket }),
      new s3.DeleteObjectCommand({ Bucket, Key: "1/x", VersionId: "1" }),
    ];
    for (const command of refused)
      expect(await refusal(server.send(command as never))).toEqual(["NotImplemented", 501]);
    expect(await textOf(await get(ada, "1/x"))).toBe("one");
  });

  test("no object has tags", async () => {
    await put(ada, "1/x", "one");
    expect((await ada.send(new s3.GetObjectTaggingCommand({ Bucket, Key: "1/x" }))).TagSet).toEqual([]);
    expect(await refusal(bob.send(new s3.GetObjectTaggingCommand({ Bucket, Key: "1/x" })))).toEqual(["NoSuchKey", 404]);
    expect(await refusal(server.send(new s3.GetBucketTaggingCommand({ Bucket })))).toEqual(["NotImplemented", 501]);
  });
});

describe("uploads in parts", () => {
  const PART = 5 * 1024 * 1024;

  test("the library uploads a stream in parallel parts", async () => {
    const content = Buffer.alloc(2 * PART + 1234, "abcdefghij");
    const Body = Readable.from([content.subarray(0, PART + 77), content.subarray(PART + 77)]);
    const params = { Bucket, Key: "1/large", Body, ContentType: "video/mp4", Metadata: { a: "b" } };
    await new Upload({ client: ada, params, partSize: PART }).done();
    const found = await get(ada, "1/large");
    expect(found).toMatchObject({ ContentType: "video/mp4", Metadata: { a: "b" }, ContentLength: content.length });
    expect(sha256(Buffer.from(await found.Body!.transformToByteArray()))).toBe(sha256(content));
    expect((await owner.query("select from content_service.upload_parts")).rowCount).toBe(0);
  });

  test("parts are listed, replaced, copied, chosen and aborted, by whom began", async () => {
    await put(ada, "1/source", "0123456789");
    const Key = "1/parts";
    const { UploadId } = await ada.send(new s3.CreateMultipartUploadCommand({ Bucket, Key }));
    const part = (PartNumber: number, Body: string | Buffer, client = ada) =>
      client.send(new s3.UploadPartCommand({ Bucket, Key, UploadId, PartNumber, Body }));
    await part(1, "short");
    const one = await part(1, Buffer.alloc(PART, "x"));
    const three = await part(3, "end");
    const copied = await ada.send(
      new s3.UploadPartCopyCommand({
        ...{ Bucket, Key, UploadId, PartNumber: 2, CopySource: `${Bucket}/1/source`, CopySourceRange: "bytes=2-4" },
      }),
    );
    const { Parts } = await ada.send(new s3.ListPartsCommand({ Bucket, Key, UploadId }));
    expect(Parts!.map(({ PartNumber, Size }) => [PartNumber, Size])).toEqual([
      [1, PART],
      [2, 3],
      [3, 3],
    ]);
    expect([three.ETag, copied.CopyPartResult!.ETag]).toEqual([`"${md5("end")}"`, `"${md5("234")}"`]);
    const { Uploads } = await ada.send(new s3.ListMultipartUploadsCommand({ Bucket }));
    expect(Uploads!.map((upload) => [upload.Key, upload.UploadId])).toEqual([[Key, UploadId]]);
    expect((await bob.send(new s3.ListMultipartUploadsCommand({ Bucket }))).Uploads).toBeUndefined();
    expect(await refusal(part(1, "x", bob))).toEqual(["NoSuchUpload", 404]);
    expect(await refusal(part(10_001, "x"))).toEqual(["InvalidArgument", 400]);
    const complete = (chosen: s3.CompletedPart[]) =>
      ada.send(new s3.CompleteMultipartUploadCommand({ Bucket, Key, UploadId, MultipartUpload: { Parts: chosen } }));
    // One part has the tag of its response, the other that of the list.
    const chosen = [
      { PartNumber: 1, ETag: one.ETag },
      { PartNumber: 3, ETag: Parts![2]!.ETag },
    ];
    const wrongPart = [{ PartNumber: 1, ETag: `"${md5("other")}"` }];
    expect(await refusal(complete(wrongPart))).toEqual(["InvalidPart", 400]);
    expect(await refusal(complete([...chosen].reverse()))).toEqual(["InvalidPartOrder", 400]);
    expect(await refusal(complete([{ PartNumber: 1, ETag: '"other"' }]))).toEqual(["InvalidPart", 400]);
    expect(
      await refusal(complete([chosen[0]!, { PartNumber: 2, ETag: copied.CopyPartResult!.ETag }, chosen[1]!])),
    ).toEqual(["EntityTooSmall", 400]);
    const { ETag } = await complete(chosen);
    const digests = [Buffer.alloc(PART, "x"), "end"].map((each) => createHash("md5").update(each).digest());
    expect(ETag).toBe(`"${md5(Buffer.concat(digests))}-2"`);
    expect(await head(ada, Key)).toMatchObject({ ContentLength: PART + 3, ETag });
    const { Contents } = await ada.send(new s3.ListObjectsV2Command({ Bucket, Prefix: Key }));
    expect(Contents!.map((each) => each.ETag)).toEqual([ETag]);
    expect(await refusal(get(ada, Key, { IfNoneMatch: ETag }))).toEqual(["Unknown", 304]);
    // A client that has missed the response sends it again; others learn nothing.
    expect(await complete(chosen)).toMatchObject({ ETag, Key, Bucket });
    const byBob = new s3.CompleteMultipartUploadCommand({ Bucket, Key, UploadId, MultipartUpload: { Parts: chosen } });
    expect(await refusal(bob.send(byBob))).toEqual(["NoSuchUpload", 404]);
    expect(await refusal(part(1, "x"))).toEqual(["NoSuchUpload", 404]);
    await put(ada, Key, "another object");
    expect(await refusal(complete(chosen))).toEqual(["NoSuchUpload", 404]);

    const other = await ada.send(new s3.CreateMultipartUploadCommand({ Bucket, Key: "1/other" }));
    await ada.send(new s3.AbortMultipartUploadCommand({ Bucket, Key: "1/other", UploadId: other.UploadId }));
    expect((await ada.send(new s3.ListMultipartUploadsCommand({ Bucket }))).Uploads).toBeUndefined();
  });

  test("unfinished uploads are listed in pages, which name where they begin", async () => {
    const keys = ["1/a ü", "1/b", "1/c"];
    for (const Key of keys) await ada.send(new s3.CreateMultipartUploadCommand({ Bucket, Key }));
    const page = (more: object) => ada.send(new s3.ListMultipartUploadsCommand({ Bucket, MaxUploads: 1, ...more }));
    const first = await page({});
    expect(first).toMatchObject({ KeyMarker: "", UploadIdMarker: "", NextKeyMarker: "1/a ü", IsTruncated: true });
    const second = await page({ KeyMarker: first.NextKeyMarker });
    expect(second).toMatchObject({ KeyMarker: "1/a ü", NextKeyMarker: "1/b", IsTruncated: true });
    const third = await page({ KeyMarker: second.NextKeyMarker, UploadIdMarker: second.NextUploadIdMarker });
    expect(third).toMatchObject({ KeyMarker: "1/b", UploadIdMarker: second.NextUploadIdMarker, IsTruncated: false });
    expect([first, second, third].flatMap(({ Uploads }) => Uploads!.map(({ Key }) => Key))).toEqual(keys);
    const encoded = await page({ EncodingType: "url" });
    expect(encoded).toMatchObject({ EncodingType: "url", NextKeyMarker: "1/a%20%C3%BC" });
  });

  test("unfinished uploads of anonymous callers, who are many, are not listed", async () => {
    await owner.query(`
      insert into content_service.unfinished_uploads (id, caller, quota_key, bucket_id, name)
      select gen_random_uuid(), role || ' ', '', 'notes', role from unnest('{anon,service_role}'::text[]) as role`);
    const listed = async (client: s3.S3Client) =>
      (await client.send(new s3.ListMultipartUploadsCommand({ Bucket }))).Uploads?.map(({ Key }) => Key);
    expect(await listed(clientOf({ role: "anon" }))).toBeUndefined();
    expect(await listed(server)).toEqual(["service_role"]);
  });

  const sha256Of = (...content: Buffer[]) => createHash("sha256").update(Buffer.concat(content)).digest();
  const FIRST = Buffer.alloc(PART, "x");
  const END = Buffer.from("end");

  test.each([
    [
      "CRC32",
      Buffer.from(
        crc32(Buffer.concat([FIRST, END]))
          .toString(16)
          .padStart(8, "0"),
        "hex",
      ).toString("base64"),
    ],
    ["SHA256", sha256Of(FIRST, END).toString("base64")],
    ["SHA256", `${sha256Of(sha256Of(FIRST), sha256Of(END)).toString("base64")}-2`],
  ])("an object of parts is compared with its checksum by %s: %s", async (algorithm, right) => {
    const Key = "1/whole";
    const { UploadId } = await ada.send(new s3.CreateMultipartUploadCommand({ Bucket, Key }));
    const Parts = await Promise.all(
      [FIRST, END].map(async (Body, index) => {
        const PartNumber = index + 1;
        const part = { Bucket, Key, UploadId, PartNumber, Body };
        const { ETag } = await ada.send(new s3.UploadPartCommand(part));
        return { PartNumber, ETag };
      }),
    );
    const completeWith = (value: string) =>
      ada.send(
        new s3.CompleteMultipartUploadCommand({
          ...{ Bucket, Key, UploadId, MultipartUpload: { Parts } },
          [`Checksum${algorithm}`]: value,
        }),
      );
    const wrong = right.startsWith("A") ? `B${right.slice(1)}` : `A${right.slice(1)}`;
    expect(await refusal(completeWith(wrong))).toEqual(["BadDigest", 400]);
    expect(await refusal(head(ada, Key))).toEqual(["NotFound", 404]);
    expect(await completeWith(right)).toMatchObject({ [`Checksum${algorithm}`]: right });
    expect((await head(ada, Key)).ContentLength).toBe(PART + 3);
  });

  test("unfinished uploads are bounded by number and bytes", async () => {
    await owner.query("update content_service.bounds set bound = 2 where name = 'unfinished uploads of a caller'");
    const begin = (client: s3.S3Client, Key: string) =>
      client.send(new s3.CreateMultipartUploadCommand({ Bucket, Key }));
    try {
      for (const key of ["1/a", "1/b"]) await begin(ada, key);
      expect(await refusal(begin(ada, "1/c"))).toEqual(["SlowDown", 503]);
      await begin(bob, "2/a");
      for (const key of ["1/a", "1/b", "1/c"]) await begin(server, key);
    } finally {
      await owner.query("update content_service.bounds set bound = 200 where name = 'unfinished uploads of a caller'");
    }
    await owner.query("update storage.buckets set file_size_limit = 10");
    const { UploadId } = await begin(server, "1/small");
    const part = (PartNumber: number, Body: string) =>
      server.send(new s3.UploadPartCommand({ Bucket, Key: "1/small", UploadId, PartNumber, Body }));
    await part(1, "123456");
    expect(await refusal(part(2, "123456"))).toEqual(["QuotaExceeded", 403]);
    await part(1, "1234567890");
  });
});

describe("signatures", () => {
  test("addresses that are signed are used without credentials, until they end", async () => {
    await put(ada, "1/x", "one");
    const download = await getSignedUrl(ada, new s3.GetObjectCommand({ Bucket, Key: "1/x" }), { expiresIn: 60 });
    expect(await (await fetch(download)).text()).toBe("one");
    const upload = await getSignedUrl(ada, new s3.PutObjectCommand({ Bucket, Key: "1/new" }), { expiresIn: 60 });
    expect((await fetch(upload, { method: "PUT", body: "new" })).status).toBe(200);
    expect(await textOf(await get(ada, "1/new"))).toBe("new");
    const past = { signingDate: new Date(Date.now() - 120_000), expiresIn: 60 };
    const ended = await fetch(await getSignedUrl(ada, new s3.GetObjectCommand({ Bucket, Key: "1/x" }), past));
    expect([ended.status, await ended.text()]).toEqual([403, expect.stringContaining("<Code>AccessDenied</Code>")]);
    for (const changed of [
      download.replace("/1/x", "/1/new"),
      download.replace("X-Amz-Expires=60", "X-Amz-Expires=600"),
      `${download}&response-content-type=text%2Fcsv`,
      `${download}${"&=".repeat(1000)}&response-content-type=text%2Fcsv`,
      `${download}&X-Amz-Expires=600`,
    ])
      expect((await fetch(changed)).status).toBeGreaterThanOrEqual(400);
    expect((await fetch(download, { method: "DELETE" })).status).toBe(403);
    const copying = await fetch(upload, { method: "PUT", headers: { "x-amz-copy-source": "notes/1/x" } });
    expect([copying.status, await copying.text()]).toEqual([403, expect.stringContaining("not signed")]);
  });

  test("other secrets, unknown keys, ended tokens and wrong clocks are refused", async () => {
    const list = (client: s3.S3Client) => client.send(new s3.ListBucketsCommand({}));
    const wrong = clientWith({ accessKeyId: "key-of-the-server", secretAccessKey: "other" });
    expect(await refusal(list(wrong))).toEqual(["SignatureDoesNotMatch", 403]);
    expect(await refusal(list(clientWith({ accessKeyId: "other", secretAccessKey: "other" })))).toEqual([
      "InvalidAccessKeyId",
      403,
    ]);
    const token = tokenOf({ role: "authenticated", sub: "1" });
    const stolen = clientWith({ accessKeyId: "x", secretAccessKey: "guess", sessionToken: token });
    expect(await refusal(list(stolen))).toEqual(["SignatureDoesNotMatch", 403]);
    const old = jwt.sign({ role: "authenticated", sub: "1", exp: 1 }, SECRET);
    const expired = clientWith({ accessKeyId: "x", secretAccessKey: old, sessionToken: old });
    expect(await refusal(list(expired))).toEqual(["ExpiredToken", 400]);
    const forged = clientWith({ accessKeyId: "x", secretAccessKey: "a.b.c", sessionToken: "a.b.c" });
    expect((await refusal(list(forged)))[0]).toBe("InvalidToken");
    for (const minutes of [-20, 20]) {
      const skewed = clientOf({ role: "authenticated", sub: "1" }, { systemClockOffset: minutes * 60_000 });
      expect(await refusal(list(skewed))).toEqual(["RequestTimeTooSkewed", 403]);
    }
    const unsigned = await fetch(`${service.url}/storage/v1/s3/notes/1/x`);
    expect([unsigned.status, unsigned.headers.get("content-type")]).toEqual([403, "application/xml"]);
  });

  test("the public key of the deployment is a secret for session tokens, as at Supabase", async () => {
    const page = await (await fetch(service.url, { headers: { accept: "text/html" } })).text();
    const [anonKey] = /eyJ[\w-]+\.[\w-]+\.[\w-]+/.exec(page)!;
    const sessionToken = tokenOf({ role: "authenticated", sub: "1" });
    const client = clientWith({ accessKeyId: "project", secretAccessKey: anonKey, sessionToken });
    expect((await client.send(new s3.ListBucketsCommand({}))).Buckets!.length).toBe(1);
  });

  test("a page that is opened by a signed address runs no scripts", async () => {
    await put(ada, "1/x.html", "<script>1</script>", { ContentType: "text/html" });
    const address = await getSignedUrl(ada, new s3.GetObjectCommand({ Bucket, Key: "1/x.html" }));
    for (const each of [
      address,
      await getSignedUrl(ada, new s3.GetObjectCommand({ Bucket, Key: "1/x.html", ResponseContentType: "text/html" })),
    ]) {
      const { headers } = await fetch(each);
      expect([headers.get("content-security-policy"), headers.get("x-content-type-options")]).toEqual([
        expect.stringContaining("sandbox"),
        "nosniff",
      ]);
    }
  });

  test("a list of types is refused, and sent as one type where a row or an address has it", async () => {
    const ContentType = "image/png; a=b, text/html";
    await put(ada, "1/x", "<script>1</script>", { ContentType: "text/html; charset=utf-8" });
    const copy = { Bucket, Key: "1/y", CopySource: `${Bucket}/1/x`, MetadataDirective: "REPLACE" as const };
    const begin = new s3.CreateMultipartUploadCommand({ Bucket, Key: "1/y", ContentType });
    expect(await refusal(put(ada, "1/y", "x", { ContentType }))).toEqual(["InvalidRequest", 400]);
    expect(await refusal(ada.send(new s3.CopyObjectCommand({ ...copy, ContentType })))).toEqual([
      "InvalidRequest",
      400,
    ]);
    expect(await refusal(ada.send(begin))).toEqual(["InvalidRequest", 400]);
    for (const ResponseContentType of [ContentType, "image/png; a\r\nb"])
      expect((await get(ada, "1/x", { ResponseContentType })).ContentType).toBe("image/png");
    expect((await get(ada, "1/x", { ResponseContentType: "text/html; a=b, c/d" })).ContentType).toBe("text/html");
    expect((await get(ada, "1/x")).ContentType).toBe("text/html; charset=utf-8");
    await owner.query("update storage.objects set metadata = metadata || $1", [{ mimetype: ContentType }]);
    expect((await get(ada, "1/x")).ContentType).toBe("image/png");
  });
});
