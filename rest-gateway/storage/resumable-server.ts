import type { Readable } from "node:stream";
import { DataStore, ERRORS, type Locker, MemoryLocker, Server, Upload } from "@tus/server";
import { quotaKey } from "#accounts/identity";
import type { UnfinishedUploads } from "#files";
import { HttpError } from "#http";
import type { ObjectAddress } from "./object-rows.ts";
import { checkSignature } from "./signed-urls.ts";
import { explainStoreError, storageError } from "./storage-error.ts";
import { checkName, ownerOf, type StorageRequest, type StorageServices } from "./storage-request.ts";
import { keepObject, newObject, termsOf, type UploadRight } from "./upload.ts";
import { checkType, describe, NO_CACHE, readUserMetadata, singleLine } from "./upload-body.ts";

/** What is known about an upload between its requests. */
type ResumableUpload = {
  readonly address: ObjectAddress;
  readonly right: UploadRight;
  /** Absent until the client knows it. */
  readonly size?: number;
  readonly sent: SentMetadata;
  readonly createdAt: string;
  readonly isFinished?: boolean;
};

/** `Upload-Metadata`, as clients of Supabase send it. */
type SentMetadata = Readonly<Record<string, string | null>>;

export type ResumableServices = Pick<StorageServices, "store" | "keys" | "config"> & {
  readonly locker: Locker;
  /** Where uploads are created. */
  readonly path: string;
};

const LIFETIME_MS = 24 * 3_600_000;

export type ResumableServer = {
  readonly server: Server;
  /** What the gateway explains. */
  failure: unknown;
};

export const makeLocker = () => new MemoryLocker();

/** The protocol for one request, whose caller's policies decide. */
export function openResumableServer(request: StorageRequest, services: ResumableServices): ResumableServer {
  const { store, config, locker, path } = services;
  const { rows } = request;
  const uploads = store.uploads<ResumableUpload>();
  const datastore = new UploadStore(uploads);
  const opened: ResumableServer = {
    failure: null,
    server: new Server({
      ...{ path, locker, datastore, relativeLocation: true },
      async namingFunction(_, sent = {}) {
        const upload = await admitUpload(request, sent, services);
        datastore.created = upload;
        return uploads.newId(quotaOf(request, upload));
      },
      async onIncomingRequest(_, id) {
        if (datastore.created === null) await checkAccess(request, await datastore.find(id), services);
      },
      async maxSize(_, id) {
        const { address } = datastore.created ?? (await datastore.find(id ?? ""));
        // To the library, 0 is no limit.
        return Math.max(1, (await termsOf(rows, address, config)).maxBytes);
      },
      async onUploadFinish(_, { id }) {
        const upload = await datastore.find(id);
        if (!upload.isFinished) await finish(request, id, upload, uploads);
        return {};
      },
      onResponseError(_, thrown) {
        const error = explainStoreError(thrown);
        if (error instanceof HttpError) return { status_code: error.status, body: error.message };
        if (error instanceof Error) opened.failure = error;
        return undefined;
      },
    }),
  };
  return opened;
}

/** Before a byte is received: who may not upload fills no disk. */
async function admitUpload(
  request: StorageRequest,
  sent: SentMetadata,
  { keys, config }: ResumableServices,
): Promise<ResumableUpload> {
  const { rows, caller, headers } = request;
  const { bucketName, objectName } = sent;
  if (!bucketName || !objectName) {
    throw storageError("InvalidRequest", "Upload-Metadata must have bucketName and objectName");
  }
  const address = { bucket: bucketName, name: checkName(objectName) };
  const token = signatureOf(request);
  const signed = token === null ? null : checkSignature("storage:upload", address, token, keys);
  const right: UploadRight = signed
    ? { owner: signed.owner ?? null, replaces: signed.upsert ?? false, isSigned: true }
    : { owner: ownerOf(caller), replaces: headers["x-upsert"] === "true" };
  checkType(typeOf(sent), await termsOf(rows, address, config));
  if (!right.isSigned) await rows.checkUpload(newObject(address, right));
  singleLine(typeOf(sent));
  if (sent.metadata) readUserMetadata(sent.metadata);
  return { address, right, sent, createdAt: new Date().toISOString() };
}

/** Whose unfinished uploads are counted together. */
function quotaOf({ caller, connection }: StorageRequest, { address, right }: ResumableUpload): string {
  if (right.isSigned) return `signed ${address.bucket}/${address.name}`;
  return `${caller.role} ${quotaKey(caller, () => connection().address)}`;
}

/** An upload belongs to the caller who has begun it, and goes on as long as policies let that caller. */
async function checkAccess(
  request: StorageRequest,
  { address, right, isFinished }: ResumableUpload,
  { keys }: ResumableServices,
): Promise<void> {
  const token = signatureOf(request);
  if (token !== null) checkSignature("storage:upload", address, token, keys);
  if ((token !== null) !== (right.isSigned ?? false)) throw ERRORS.FILE_NOT_FOUND;
  if (right.isSigned) return;
  if (right.owner !== ownerOf(request.caller)) throw ERRORS.FILE_NOT_FOUND;
  if (!isFinished) await request.rows.checkUpload(newObject(address, right));
}

/** Of the routes below `/sign`; null at the others. */
function signatureOf({ path, headers }: StorageRequest): string | null {
  if (!path.includes("/resumable/sign")) return null;
  const signature = headers["x-signature"];
  if (typeof signature !== "string") throw storageError("InvalidSignature", "The header x-signature is missing");
  return signature;
}

const typeOf = ({ contentType }: SentMetadata) => contentType ?? "application/octet-stream";

async function finish(
  { rows }: StorageRequest,
  id: string,
  upload: ResumableUpload,
  uploads: UnfinishedUploads<ResumableUpload>,
): Promise<void> {
  const { address, right, sent } = upload;
  const draft = await uploads.finish(id);
  if (draft.bytes !== upload.size) {
    await draft.discard();
    throw new Error("An upload has other bytes than were received");
  }
  const cacheControl = /^\d+$/.test(sent.cacheControl ?? "") ? `max-age=${sent.cacheControl}` : NO_CACHE;
  const metadata = describe(draft, { mimetype: typeOf(sent), cacheControl });
  const userMetadata = sent.metadata ? readUserMetadata(sent.metadata) : null;
  try {
    await keepObject(rows, address, right, { draft, metadata, userMetadata });
  } catch (error) {
    // It would be refused again.
    if (error instanceof HttpError && error.status < 500) await uploads.remove(id);
    throw error;
  }
  // Clients that have missed the response find it complete.
  await uploads.replace(id, { ...upload, size: draft.bytes, isFinished: true });
  await uploads.empty(id);
}

/** Until the object is committed the last byte counts as missing: a client that has sent all takes the upload for complete. */
function missesLast(received: number, size: number | undefined): number {
  return size === undefined ? received : Math.min(received, Math.max(size - 1, 0));
}

class UploadStore extends DataStore {
  /** The upload that this request creates. */
  created: ResumableUpload | null = null;
  readonly #uploads: UnfinishedUploads<ResumableUpload>;

  constructor(uploads: UnfinishedUploads<ResumableUpload>) {
    super();
    this.#uploads = uploads;
    this.extensions = ["creation", "creation-with-upload", "creation-defer-length", "termination", "expiration"];
  }

  async find(id: string): Promise<ResumableUpload> {
    const found = await this.#uploads.read(id);
    if (!found) throw ERRORS.FILE_NOT_FOUND;
    return found.about;
  }

  override async create(upload: Upload): Promise<Upload> {
    const about = { ...this.created!, ...(upload.size !== undefined && { size: upload.size }) };
    await this.#uploads.create(upload.id, about);
    upload.creation_date = about.createdAt;
    return upload;
  }

  override async getUpload(id: string): Promise<Upload> {
    const found = await this.#uploads.read(id);
    if (!found) throw ERRORS.FILE_NOT_FOUND;
    const { size, sent, createdAt, isFinished } = found.about;
    const offset = isFinished ? size! : missesLast(found.bytes, size);
    return new Upload({ id, offset, metadata: sent, creation_date: createdAt, ...(size !== undefined && { size }) });
  }

  override async write(content: Readable, id: string, offset: number): Promise<number> {
    const { isFinished } = await this.find(id);
    return isFinished ? offset : this.#uploads.append(id, offset, content);
  }

  override async declareUploadLength(id: string, size: number): Promise<void> {
    await this.#uploads.replace(id, { ...(await this.find(id)), size });
  }

  override remove(id: string): Promise<void> {
    return this.#uploads.remove(id);
  }

  override getExpiration(): number {
    return LIFETIME_MS;
  }
}
