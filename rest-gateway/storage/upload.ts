import { randomUUID } from "node:crypto";
import { jsonResponse } from "#http";
import {
  isSameObject,
  keepFile,
  type NewObject,
  nameContent,
  type ObjectAddress,
  type ObjectVersion,
  objectHasChanged,
  putObject,
  type StorageRows,
} from "./object-rows.ts";
import { openSigning, requireAddress, type VerifiedSignature, verifySignedToken } from "./signed-urls.ts";
import {
  addressOf,
  asSigner,
  ownerOf,
  type StorageRequest,
  type StorageRoutes,
  type StorageServices,
} from "./storage-request.ts";
import { endUpload } from "./unfinished-rows.ts";
import { type ReceivedFile, receiveFile, type UploadTerms } from "./upload-body.ts";

/** The lifetime of a signed upload, the same as in Supabase's service. */
const SIGNED_UPLOAD_SECONDS = 2 * 3600;
const FOLDER_PLACEHOLDER = ".emptyFolderPlaceholder";

export function uploadRoutes(services: StorageServices): StorageRoutes {
  return {
    "POST /object/upload/sign/{bucket}/{path*}": async (request) => {
      const address = addressOf(request);
      const { rows, caller } = request;
      await rows.termsOf(address.bucket);
      const right = { owner: ownerOf(caller), replaces: request.headers["x-upsert"] === "true" };
      if (right.replaces) await rows.checkReplacement(newObject(address, right));
      else await rows.checkUpload(newObject(address, right));
      const sign = await openSigning(caller, services);
      const token = sign("storage:upload", address, SIGNED_UPLOAD_SECONDS, { object: await rows.versionOf(address) });
      return jsonResponse(200, { url: `/object/upload/sign/${pathOf(address)}?token=${token}`, token });
    },
    "PUT /object/upload/sign/{bucket}/{path*}": async (request) => {
      const address = addressOf(request);
      const signature = await verifySignedToken("storage:upload", request.query.get("token"), services);
      requireAddress(signature, address);
      const { key, id } = await upload(asSigner(request, signature.caller), address, signedRight(signature), services);
      return jsonResponse(200, { Key: key, Id: id });
    },
    "POST /object/{bucket}/{path*}": async (request) => {
      const right = { owner: ownerOf(request.caller), replaces: request.headers["x-upsert"] === "true" };
      const { key, id } = await upload(request, addressOf(request), right, services);
      return jsonResponse(200, { Id: id, Key: key });
    },
    "PUT /object/{bucket}/{path*}": async (request) => {
      const right = { owner: ownerOf(request.caller), replaces: true };
      const { key, id } = await upload(request, addressOf(request), right, services);
      return jsonResponse(200, { Id: id, Key: key });
    },
  };
}

export function pathOf({ bucket, name }: ObjectAddress): string {
  return [bucket, ...name.split("/")].map(encodeURIComponent).join("/");
}

export type UploadRight = {
  readonly owner: string | null;
  readonly replaces: boolean;
  /** The object at the time of signing, which is the only one that may be replaced; null if the name was free, and must still be. */
  readonly signedFor?: ObjectVersion | null;
};

/** Returns the right that a signed address gives to anybody, as its signer. */
export function signedRight({ caller, object }: Pick<VerifiedSignature, "caller" | "object">): UploadRight {
  return { owner: ownerOf(caller), replaces: object !== null, signedFor: object };
}

/** Uploads a file: the bytes are safe before the row that names them is committed. */
async function upload(
  request: StorageRequest,
  address: ObjectAddress,
  right: UploadRight,
  { store, config }: Pick<StorageServices, "store" | "config">,
): Promise<{ readonly key: string; readonly id: string }> {
  const { rows } = request;
  const terms = await termsOf(rows, address, config);
  await checkRight(rows, address, right);
  const id = await keepObject(rows, address, right, await receiveFile(request, terms, store));
  return { key: `${address.bucket}/${address.name}`, id };
}

/** Checks the right before the body is read, so that a caller who may not upload does not fill the disk. */
export async function checkRight(rows: StorageRows, address: ObjectAddress, right: UploadRight): Promise<void> {
  const { signedFor } = right;
  if (signedFor && !isSameObject(await rows.versionOf(address), signedFor)) throw objectHasChanged();
  await rows.checkUpload(newObject(address, right));
}

/** Returns the terms of uploads to an address. */
export async function termsOf(
  rows: StorageRows,
  { bucket, name }: ObjectAddress,
  { storageFileBytes }: Pick<StorageServices["config"], "storageFileBytes">,
): Promise<UploadTerms> {
  const { maxBytes, types } = await rows.termsOf(bucket);
  if (name.endsWith(FOLDER_PLACEHOLDER)) return { maxBytes: 0, types: null };
  return { maxBytes: Math.min(maxBytes ?? Number.POSITIVE_INFINITY, storageFileBytes), types };
}

type KeepOptions = {
  /** The content that the object must have; otherwise throws. */
  readonly expectedContent?: string | null;
  /** The upload in parts that this completes. */
  readonly uploadId?: string | null;
  /** The version of the object; by default a new one. */
  readonly version?: string;
};

/** Adds or replaces the object, and gives the file its name. Returns the id of the object. */
export async function keepObject(
  rows: StorageRows,
  address: ObjectAddress,
  right: UploadRight,
  { draft, metadata, userMetadata }: ReceivedFile,
  { expectedContent = null, uploadId = null, version = randomUUID() }: KeepOptions = {},
): Promise<string> {
  try {
    return await rows.transact(async (run) => {
      const object = { ...newObject(address, right), metadata, userMetadata, version };
      // The upload no longer counts, because the object does.
      if (uploadId !== null) await endUpload(run, uploadId);
      await putObject(run, object, { content: expectedContent, version: right.signedFor ?? null });
      await keepFile(run, draft.hash, draft.bytes);
      await draft.publish();
      return nameContent(run, address, draft.hash);
    });
  } finally {
    await draft.discard();
  }
}

export function newObject(address: ObjectAddress, { owner, replaces }: UploadRight): NewObject {
  return { ...address, owner, replaces, version: randomUUID(), metadata: {}, userMetadata: null };
}
