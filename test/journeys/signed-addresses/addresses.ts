import { createHash } from "node:crypto";
import * as s3 from "@aws-sdk/client-s3";
import { getSignedUrl } from "@aws-sdk/s3-request-presigner";
import type { SupabaseClient } from "@supabase/supabase-js";
import { expect } from "vitest";

/** The events that may have happened since an address was signed. */
export const EVENTS = [
  ...[
    "nothing",
    "deleted",
    "deleted and replaced by another user",
    "overwritten",
    "moved, and another one moved there",
  ],
  ...["policy changed", "promoted", "demoted", "banned", "account deleted", "grant withdrawn", "API key revoked"],
  "key of tokens rotated",
] as const;
export type Event = (typeof EVENTS)[number];

/** Uses the address at the service; true if it has its effect. */
export type Use = (url: string) => Promise<boolean>;

export type Signer = { readonly url: string; readonly token: string; readonly client: SupabaseClient };

export type StorageAddress = {
  readonly bucket: "open" | "owned";
  /** True if the object is there when the address is signed. */
  readonly isThere: boolean;
  sign(signer: Signer, name: string): Promise<Use>;
  /** Events that cannot happen to it, and why. */
  readonly except?: Partial<Record<Event, string>>;
};

const NOT_THERE = {
  deleted: "the name was free",
  overwritten: "the name was free: the same as replaced by another user",
  "moved, and another one moved there": "the name was free: the same as replaced by another user",
};

/** A picture of one pixel, for rendering. */
export const PICTURE = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

const TUS = { "tus-resumable": "1.0.0" };
const encoded = (text: string) => Buffer.from(text).toString("base64");

const download =
  (transform?: { readonly width: number }): StorageAddress["sign"] =>
  async ({ client, url: signedAt }, name) => {
    const { data, error } = await client.storage
      .from("open")
      .createSignedUrl(name, 315_360_000, { ...(transform && { transform }) });
    expect(error).toBeNull();
    return async (url) => (await fetch(data!.signedUrl.replace(signedAt, url))).ok;
  };

async function signUpload({ client }: Signer, name: string, upsert: boolean): Promise<string> {
  const { data, error } = await client.storage.from("open").createSignedUploadUrl(name, { upsert });
  expect(error).toBeNull();
  return data!.token;
}

const upload =
  (upsert: boolean): StorageAddress["sign"] =>
  async (signer, name) => {
    const token = await signUpload(signer, name, upsert);
    return async (url) => {
      const target = `${url}/storage/v1/object/upload/sign/open/${name}?token=${token}`;
      return (await fetch(target, { method: "PUT", body: "used", headers: { "x-upsert": "true" } })).ok;
    };
  };

const resumable =
  (upsert: boolean): StorageAddress["sign"] =>
  async (signer, name) => {
    const token = await signUpload(signer, name, upsert);
    return async (url) => {
      const begun = await fetch(`${url}/storage/v1/upload/resumable/sign`, {
        method: "POST",
        headers: {
          ...{ ...TUS, "x-signature": token, "upload-length": "4", "content-type": "application/offset+octet-stream" },
          "upload-metadata": `bucketName ${encoded("open")},objectName ${encoded(name)}`,
        },
        body: "used",
      });
      return begun.ok;
    };
  };

/** The second half of an upload by TUS, whose first half was received before the event. */
const resumed: StorageAddress["sign"] = async (signer, name) => {
  const headers = { ...TUS, "x-signature": await signUpload(signer, name, true) };
  const begun = await fetch(`${signer.url}/storage/v1/upload/resumable/sign`, {
    method: "POST",
    headers: {
      ...{ ...headers, "upload-length": "4", "content-type": "application/offset+octet-stream" },
      "upload-metadata": `bucketName ${encoded("open")},objectName ${encoded(name)}`,
    },
    body: "us",
  });
  expect(begun.status).toBe(201);
  const path = begun.headers.get("location")!;
  const rest = { ...headers, "upload-offset": "2", "content-type": "application/offset+octet-stream" };
  return async (url) => (await fetch(`${url}${path}`, { method: "PATCH", headers: rest, body: "ed" })).ok;
};

/** Clients presign by themselves, so that the address names no object: it is a request of its signer. */
const presigned =
  (command: "get" | "put"): StorageAddress["sign"] =>
  async ({ token }, name) =>
  async (url) => {
    const credentials = { accessKeyId: "any", secretAccessKey: token, sessionToken: token };
    const client = new s3.S3Client({
      ...{ endpoint: `${url}/storage/v1/s3`, region: "us-east-1", forcePathStyle: true, credentials },
      requestChecksumCalculation: "WHEN_REQUIRED",
    });
    const target = { Bucket: "owned", Key: name };
    const address = await (command === "get"
      ? getSignedUrl(client, new s3.GetObjectCommand(target))
      : getSignedUrl(client, new s3.PutObjectCommand(target)));
    return (await fetch(address, command === "get" ? {} : { method: "PUT", body: "used" })).ok;
  };

export const STORAGE_ADDRESSES: Readonly<Record<string, StorageAddress>> = {
  download: { bucket: "open", isThere: true, sign: download() },
  "transformed image": { bucket: "open", isThere: true, sign: download({ width: 1 }) },
  upload: { bucket: "open", isThere: false, sign: upload(false), except: NOT_THERE },
  "upload with upsert to a free name": { bucket: "open", isThere: false, sign: upload(true), except: NOT_THERE },
  "upload with upsert": { bucket: "open", isThere: true, sign: upload(true) },
  "upload by TUS": { bucket: "open", isThere: false, sign: resumable(false), except: NOT_THERE },
  "upload by TUS with upsert": { bucket: "open", isThere: true, sign: resumable(true) },
  "second half of an upload by TUS": { bucket: "open", isThere: true, sign: resumed },
  "S3 presigned GET": { bucket: "owned", isThere: true, sign: presigned("get") },
  "S3 presigned PUT": {
    ...{ bucket: "owned", isThere: true, sign: presigned("put") },
    except: { deleted: "it names no object, and its signer may upload a new one" },
  },
};

export const digestOf = (text: string) => createHash("sha256").update(text).digest();
