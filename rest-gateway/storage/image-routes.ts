import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import {
  type FileStore,
  type ImageOptions,
  loadImageTransformer,
  type TransformedImage,
  type TransformImage,
  UnreadableImage,
} from "#files";
import { type GatewayResponse, HttpError, matchesTag, type ResponseBody } from "#http";
import { FairLimiter, type WorkShare } from "#runtime/concurrency";
import { cacheHeaders, contentHeaders, downloadHeaders, headOnly, type SendOptions } from "./download.ts";
import { readImageOptions, type SentImageOptions } from "./image-options.ts";
import type { ObjectRow } from "./object-rows.ts";
import { findSigned } from "./signed-urls.ts";
import { storageError } from "./storage-error.ts";
import {
  addressOf,
  ownerOf,
  type StorageRequest,
  type StorageRoutes,
  type StorageServices,
} from "./storage-request.ts";

const MAX_SOURCE_BYTES = 25 * 1024 * 1024;
/** The message of Supabase's service. */
const UNSUPPORTED = "The source image is invalid or unsupported for rendering";
const TOO_MANY_PIXELS = "The source image resolution is too large to process";
const TOO_MANY_BYTES = "The source image file is too large to process";
/** The number of images at once. Node has four threads for files, name resolution and passwords, of which two stay free. */
const CONCURRENCY = 2;
const MAX_WAITING = 100;
const MAX_WAITING_OF_CALLER = 50;

export function imageRoutes({ store, ...signing }: Pick<StorageServices, "store" | "keys" | "signers">): StorageRoutes {
  const render = makeRendering(store);
  return {
    "GET /render/image/public/{bucket}/{path*}": async (request) => {
      const row = await request.rows.findPublic(addressOf(request));
      return render(request, row, Object.fromEntries(request.query), { cache: "public" });
    },
    "GET /render/image/authenticated/{bucket}/{path*}": async (request) => {
      const row = await request.rows.find(addressOf(request));
      return render(request, row, Object.fromEntries(request.query), { cache: "private" });
    },
    "GET /render/image/sign/{bucket}/{path*}": async (request) => {
      const { row, signature } = await findSigned("storage:image", request, signing);
      const { exp, transformations = "{}" } = signature;
      const options = JSON.parse(transformations) as SentImageOptions;
      return render(request, row, options, { cache: "private", expires: exp });
    },
  };
}

function makeRendering(store: FileStore) {
  let loaded: Promise<TransformImage | null> | undefined;
  const limiter = new FairLimiter({
    concurrency: CONCURRENCY,
    maxWaiting: MAX_WAITING,
    maxWaitingOfKey: MAX_WAITING_OF_CALLER,
    refusalOfAll: tooManyImages,
    refusalOfKey: tooManyImages,
  });
  return async (
    request: StorageRequest,
    row: ObjectRow,
    sent: SentImageOptions,
    sending: SendOptions,
  ): Promise<GatewayResponse<ResponseBody>> => {
    const options = readImageOptions(sent, request.headers.accept);
    loaded ??= loadImageTransformer();
    const transformImage = await loaded;
    if (!transformImage) throw imagesNotInstalled();
    const tag = tagOf(row, options);
    const headers = { ...cacheHeaders(row, sending), ETag: tag, Vary: "Accept" };
    if (matchesTag(request.headers["if-none-match"], tag)) return { status: 304, headers, body: null };
    const { content, type } = await limiter.run(sharesOf(request), () => {
      if (request.signal.aborted) throw storageError("InvalidRequest", "The client has disconnected.");
      return transformFile(row, options, store, transformImage);
    });
    const described = { ...headers, ...contentHeaders(type), ...downloadHeaders(request), "Accept-Ranges": "none" };
    if (request.method === "HEAD")
      return { status: 200, headers: described, bodyLength: content.length, body: headOnly() };
    return { status: 200, headers: described, body: content };
  };
}

/** Returns the tag of the content and its options. */
function tagOf({ content }: ObjectRow, options: ImageOptions): string {
  const digest = createHash("sha256")
    .update(JSON.stringify([content, options]))
    .digest("base64url");
  return `"${digest}"`;
}

function sharesOf(request: StorageRequest): readonly WorkShare[] {
  const key = ownerOf(request.caller) ?? request.connection().address ?? "";
  return [{ key, turns: 1 }];
}

async function transformFile(
  { content: hash }: ObjectRow,
  options: ImageOptions,
  store: FileStore,
  transformImage: TransformImage,
): Promise<TransformedImage> {
  const source = hash === null ? null : await readSource(hash, store);
  if (!source) throw storageError("NoSuchKey");
  try {
    return await transformImage(source, options);
  } catch (error) {
    if (!(error instanceof UnreadableImage)) throw error;
    throw storageError("InvalidRequest", error.isTooLarge ? TOO_MANY_PIXELS : UNSUPPORTED, { cause: error });
  }
}

async function readSource(hash: string, store: FileStore): Promise<Buffer | null> {
  const file = await store.open(hash);
  if (!file) return null;
  if (file.bytes === 0 || file.bytes > MAX_SOURCE_BYTES) {
    await file.close();
    throw storageError("InvalidRequest", file.bytes === 0 ? UNSUPPORTED : TOO_MANY_BYTES);
  }
  const content = await file.read({ start: 0, end: file.bytes - 1 });
  return content instanceof Readable ? Buffer.concat(await content.toArray()) : content;
}

function tooManyImages(): HttpError {
  return new HttpError(503, "SlowDown", "Too many images are being transformed at the moment; try again soon.", {
    headers: { "Retry-After": "2" },
  });
}

function imagesNotInstalled(): HttpError {
  return storageError("FeatureNotEnabled", "Images are not transformed here.", {
    hint: "Install the package sharp: npm install sharp",
  });
}
