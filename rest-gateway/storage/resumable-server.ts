import type { Readable } from "node:stream";
import { DataStore, ERRORS, type Locker, MemoryLocker, Server, Upload } from "@tus/server";
import type { UnfinishedUploads } from "#files";
import { HttpError } from "#http";
import { OPAQUE_TYPE } from "./media-type.ts";
import { isSameObject, type ObjectAddress } from "./object-rows.ts";
import { requireAddress, type VerifiedSignature, verifySignedToken } from "./signed-urls.ts";
import { explainStoreError, storageError } from "./storage-error.ts";
import { asSigner, checkName, ownerOf, type StorageRequest, type StorageServices } from "./storage-request.ts";
import { beginUpload, endUpload, quotaOf } from "./unfinished-rows.ts";
import { checkRight, keepObject, signedRight, termsOf, type UploadRight } from "./upload.ts";
import { checkType, describe, NO_CACHE, readUserMetadata, singleLine } from "./upload-body.ts";

/** The state of an upload between its requests. */
type ResumableUpload = {
  readonly address: ObjectAddress;
  readonly right: UploadRight;
  /** The size; absent until the client knows it. */
  readonly size?: number;
  readonly sent: SentMetadata;
  readonly createdAt: string;
  readonly isFinished?: boolean;
};

/** The values of `Upload-Metadata`, as clients of Supabase send it. */
type SentMetadata = Readonly<Record<string, string | null>>;

export type ResumableServices = Pick<StorageServices, "store" | "keys" | "signers" | "config"> & {
  readonly locker: Locker;
  /** The uploads that are being finished, by their ids. */
  readonly finishing: Map<string, Promise<void>>;
  /** The path at which uploads are created. */
  readonly path: string;
};

const LIFETIME_MS = 24 * 3_600_000;

type ResumableServer = {
  readonly server: Server;
  /** The error that the gateway explains. */
  failure: unknown;
};

export const makeLocker = () => new MemoryLocker();

/** An upload of one caller, who is the signer if the address is signed. */
type ResumableRequest = { readonly request: StorageRequest; readonly signature: VerifiedSignature | null };

/** Opens the protocol for one request, whose caller's policies decide. */
export async function openResumableServer(sent: StorageRequest, services: ResumableServices): Promise<ResumableServer> {
  const { store, locker, finishing, path } = services;
  const signature = await readSignature(sent, services);
  const request = signature ? asSigner(sent, signature.caller) : sent;
  const resumable: ResumableRequest = { request, signature };
  const uploads = store.uploads<ResumableUpload>();
  const datastore = new UploadStore(uploads, request, services);
  const opened: ResumableServer = {
    failure: null,
    server: new Server({
      ...{ path, locker, datastore, relativeLocation: true },
      async namingFunction(_, metadata = {}) {
        datastore.created = await admitUpload(resumable, metadata, services);
        return uploads.newId(`${request.caller.role} ${quotaOf(request)}`);
      },
      async onIncomingRequest(_, id) {
        if (datastore.created === null) await checkAccess(resumable, await datastore.find(id));
      },
      // To the library, 0 is no limit.
      maxSize: async (_, id) => Math.max(1, await datastore.maxBytesOf(id)),
      // The library has released its lock by now, so that a repeated last request could finish the upload a second time.
      async onUploadFinish(_, { id }) {
        const finished = finishing.get(id) ?? finish(request, id, datastore).finally(() => finishing.delete(id));
        finishing.set(id, finished);
        await finished;
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

/** Checks an upload before a byte is received, so that a caller who may not upload does not fill the disk. */
async function admitUpload(
  { request, signature }: ResumableRequest,
  sent: SentMetadata,
  { config }: ResumableServices,
): Promise<ResumableUpload> {
  const { rows, caller, headers } = request;
  const { bucketName, objectName } = sent;
  if (!bucketName || !objectName) {
    throw storageError("InvalidRequest", "Upload-Metadata must have bucketName and objectName");
  }
  const address = { bucket: bucketName, name: checkName(objectName) };
  if (signature) requireAddress(signature, address);
  const right: UploadRight = signature
    ? signedRight(signature)
    : { owner: ownerOf(caller), replaces: headers["x-upsert"] === "true" };
  checkType(typeOf(sent), await termsOf(rows, address, config));
  await checkRight(rows, address, right);
  singleLine(typeOf(sent));
  if (sent.metadata) readUserMetadata(sent.metadata);
  return { address, right, sent, createdAt: new Date().toISOString() };
}

/** Checks the caller: an upload belongs to the caller who has begun it, and goes on as long as policies permit. */
async function checkAccess(
  { request, signature }: ResumableRequest,
  { address, right, isFinished }: ResumableUpload,
): Promise<void> {
  const { signedFor } = right;
  if (signature) requireAddress(signature, address);
  const isSameRight = signature
    ? signedFor !== undefined && isSameObject(signature.object, signedFor)
    : signedFor === undefined;
  if (!isSameRight || right.owner !== ownerOf(request.caller)) throw ERRORS.FILE_NOT_FOUND;
  if (!isFinished) await checkRight(request.rows, address, right);
}

/** Reads the signature of the routes below `/sign`; null for the others. */
async function readSignature(
  { path, headers, method }: StorageRequest,
  services: ResumableServices,
): Promise<VerifiedSignature | null> {
  if (!path.includes("/resumable/sign") || method === "OPTIONS") return null;
  const signature = headers["x-signature"];
  if (typeof signature !== "string") throw storageError("InvalidSignature", "The header x-signature is missing");
  return verifySignedToken("storage:upload", signature, services);
}

const typeOf = ({ contentType }: SentMetadata) => contentType ?? OPAQUE_TYPE;

async function finish({ rows }: StorageRequest, id: string, datastore: UploadStore): Promise<void> {
  const upload = await datastore.find(id);
  if (upload.isFinished) return;
  const { address, right, sent } = upload;
  const { uploads } = datastore;
  const draft = await uploads.finish(id);
  if (draft.bytes !== upload.size) {
    await draft.discard();
    throw new Error("An upload has other bytes than were received");
  }
  const cacheControl = /^\d+$/.test(sent.cacheControl ?? "") ? `max-age=${sent.cacheControl}` : NO_CACHE;
  const metadata = describe(draft, { mimetype: typeOf(sent), cacheControl });
  const userMetadata = sent.metadata ? readUserMetadata(sent.metadata) : null;
  try {
    await keepObject(rows, address, right, { draft, metadata, userMetadata }, { uploadId: id, version: id });
  } catch (error) {
    if (!(error instanceof HttpError) || error.status >= 500) throw error;
    // Another gateway may have finished the upload, for the same client. Otherwise a repetition would be refused again.
    if ((await rows.versionOf(address))?.version !== id) {
      await datastore.remove(id);
      throw error;
    }
  }
  // Clients that have missed the response find the upload complete.
  await uploads.replace(id, { ...upload, size: draft.bytes, isFinished: true });
  await uploads.empty(id);
}

/** Counts the last byte as missing until the object is committed: a client that has sent all regards the upload as complete. */
function missesLast(received: number, size: number | undefined): number {
  return size === undefined ? received : Math.min(received, Math.max(size - 1, 0));
}

class UploadStore extends DataStore {
  /** The upload that this request creates. */
  created: ResumableUpload | null = null;
  readonly uploads: UnfinishedUploads<ResumableUpload>;
  readonly #request: StorageRequest;
  readonly #config: ResumableServices["config"];

  constructor(
    uploads: UnfinishedUploads<ResumableUpload>,
    request: StorageRequest,
    { config }: Pick<ResumableServices, "config">,
  ) {
    super();
    this.uploads = uploads;
    this.#request = request;
    this.#config = config;
    this.extensions = ["creation", "creation-with-upload", "creation-defer-length", "termination", "expiration"];
  }

  async find(id: string): Promise<ResumableUpload> {
    const found = await this.uploads.read(id);
    if (!found) throw ERRORS.FILE_NOT_FOUND;
    return found.about;
  }

  /** Returns the limit of an upload; without an upload, for a client that queries the server's capabilities, that of all files. */
  async maxBytesOf(id: string | null): Promise<number> {
    if (this.created === null && id === null) return this.#config.storageFileBytes;
    const { address } = this.created ?? (await this.find(id!));
    return (await termsOf(this.#request.rows, address, this.#config)).maxBytes;
  }

  override async create(upload: Upload): Promise<Upload> {
    const about = { ...this.created!, ...(upload.size !== undefined && { size: upload.size }) };
    await this.#reserve(upload.id, about.address, upload.size ?? 0);
    try {
      await this.uploads.create(upload.id, about);
    } catch (error) {
      await this.#release(upload.id);
      throw error;
    }
    upload.creation_date = about.createdAt;
    return upload;
  }

  override async getUpload(id: string): Promise<Upload> {
    const found = await this.uploads.read(id);
    if (!found) throw ERRORS.FILE_NOT_FOUND;
    const { size, sent, createdAt, isFinished } = found.about;
    const offset = isFinished ? size! : missesLast(found.bytes, size);
    return new Upload({ id, offset, metadata: sent, creation_date: createdAt, ...(size !== undefined && { size }) });
  }

  override async write(content: Readable, id: string, offset: number): Promise<number> {
    const { isFinished, address, size } = await this.find(id);
    if (isFinished) return offset;
    const announced = Number(this.#request.headers["content-length"] ?? 0);
    await this.#reserve(id, address, size ?? offset + announced);
    const received = await this.uploads.append(id, offset, content);
    if (size === undefined && received !== offset + announced) await this.#reserveReceived(id, address, received);
    return received;
  }

  override async declareUploadLength(id: string, size: number): Promise<void> {
    const upload = await this.find(id);
    await this.#reserve(id, upload.address, size);
    await this.uploads.replace(id, { ...upload, size });
  }

  override async remove(id: string): Promise<void> {
    await this.uploads.remove(id);
    await this.#release(id);
  }

  override getExpiration(): number {
    return LIFETIME_MS;
  }

  /** Reserves bytes before they are received, for the caller and for the bucket. */
  async #reserve(id: string, address: ObjectAddress, bytes: number): Promise<void> {
    const maxBytes = await this.maxBytesOf(id);
    await beginUpload(this.#request, { id, address, caller: "", about: {}, bytes, maxBytes });
  }

  /** Reserves more bytes than announced, and removes the upload if there is no room for them. */
  async #reserveReceived(id: string, address: ObjectAddress, bytes: number): Promise<void> {
    try {
      await this.#reserve(id, address, bytes);
    } catch (error) {
      await this.remove(id);
      throw error;
    }
  }

  #release(id: string): Promise<void> {
    return this.#request.rows.transact((run) => endUpload(run, id));
  }
}
