import { randomUUID } from "node:crypto";
import { jsonResponse } from "#http";
import {
  keepFile,
  type NewObject,
  nameContent,
  type ObjectAddress,
  putObject,
  type StorageRows,
} from "./object-rows.ts";
import { checkSignature, signAddress } from "./signed-urls.ts";
import {
  addressOf,
  ownerOf,
  type StorageRequest,
  type StorageRoutes,
  type StorageServices,
} from "./storage-request.ts";
import { type ReceivedFile, receiveFile, type UploadTerms } from "./upload-body.ts";

/** Supabase's service has this limit too. */
const SIGNED_UPLOAD_SECONDS = 2 * 3600;
const FOLDER_PLACEHOLDER = ".emptyFolderPlaceholder";

export function uploadRoutes(services: StorageServices): StorageRoutes {
  const { keys } = services;
  return {
    "POST /object/upload/sign/{bucket}/{path*}": async (request) => {
      const address = addressOf(request);
      const right = { owner: ownerOf(request.caller), replaces: request.headers["x-upsert"] === "true" };
      await request.rows.termsOf(address.bucket);
      await request.rows.checkUpload(newObject(address, right));
      const claims = { owner: right.owner, upsert: right.replaces };
      const token = signAddress("storage:upload", address, SIGNED_UPLOAD_SECONDS, keys, claims);
      return jsonResponse(200, { url: `/object/upload/sign/${pathOf(address)}?token=${token}`, token });
    },
    "PUT /object/upload/sign/{bucket}/{path*}": async (request) => {
      const address = addressOf(request);
      const { owner = null, upsert = false } = checkSignature(
        "storage:upload",
        address,
        request.query.get("token"),
        keys,
      );
      const { key, id } = await upload(request, address, { owner, replaces: upsert, isSigned: true }, services);
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
  /** Whether the service has checked the right when it signed the address. */
  readonly isSigned?: boolean;
};

/** The bytes are safe before the row that names them is committed. */
async function upload(
  request: StorageRequest,
  address: ObjectAddress,
  right: UploadRight,
  { store, config }: Pick<StorageServices, "store" | "config">,
): Promise<{ readonly key: string; readonly id: string }> {
  const { rows } = request;
  const terms = await termsOf(rows, address, config);
  // Before the body is read: who may not upload fills no disk.
  if (!right.isSigned) await rows.checkUpload(newObject(address, right));
  const id = await keepObject(rows, address, right, await receiveFile(request, terms, store));
  return { key: `${address.bucket}/${address.name}`, id };
}

/** What may be uploaded there. */
export async function termsOf(
  rows: StorageRows,
  { bucket, name }: ObjectAddress,
  { storageFileBytes }: Pick<StorageServices["config"], "storageFileBytes">,
): Promise<UploadTerms> {
  const { maxBytes, types } = await rows.termsOf(bucket);
  if (name.endsWith(FOLDER_PLACEHOLDER)) return { maxBytes: 0, types: null };
  return { maxBytes: Math.min(maxBytes ?? Number.POSITIVE_INFINITY, storageFileBytes), types };
}

/** Adds or replaces the object, and gives the file its name. Returns the id of the object. */
export async function keepObject(
  rows: StorageRows,
  address: ObjectAddress,
  right: UploadRight,
  { draft, metadata, userMetadata }: ReceivedFile,
  expectedContent: string | null = null,
): Promise<string> {
  try {
    return await rows.transact(async (run) => {
      const object = { ...newObject(address, right), metadata, userMetadata };
      await putObject(run, object, { ...right, expectedContent });
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
