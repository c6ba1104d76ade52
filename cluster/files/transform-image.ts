import type sharpModule from "sharp";
import type { Metadata, Sharp } from "sharp";

/** The options of callers; null keeps the property of the image. */
export type ImageOptions = {
  readonly width: number | null;
  readonly height: number | null;
  readonly resize: "cover" | "contain" | "fill";
  /** A number from 1 to 100. */
  readonly quality: number;
  readonly format: "origin" | "webp" | "avif";
};

export type TransformedImage = { readonly content: Buffer; readonly type: string };

export type TransformImage = (content: Buffer, options: ImageOptions) => Promise<TransformedImage>;

/** The error for an image of an unsupported kind, or one with too many pixels. */
export class UnreadableImage extends Error {
  override name = "UnreadableImage";
  readonly isTooLarge: boolean;

  constructor(cause: unknown) {
    super("The image could not be read", { cause });
    this.isTooLarge = cause instanceof TooManyPixels || /exceeds pixel limit/.test(String(cause));
  }
}

class TooManyPixels extends Error {}

const MAX_PIXELS = 50_000_000;
/** Images of many kinds are decoded as a whole, and take up to one and a half times as much memory. */
const MAX_DECODED_BYTES = 150_000_000;
/** Above this size, images are transformed one at a time. */
const LARGE_DECODED_BYTES = 50_000_000;
const MAX_SECONDS = 20;

/** The loaders by the names of the library. SVG, PDF and others are excluded, because their parsers follow references. */
const LOADERS = ["Jpeg", "Png", "Webp", "Nsgif", "Heif", "Tiff"].map((kind) => `VipsForeignLoad${kind}`);

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  jpeg: "image/jpeg",
  png: "image/png",
  webp: "image/webp",
  gif: "image/gif",
  avif: "image/avif",
  tiff: "image/tiff",
};

/** Returns null if the package `sharp` is not installed. */
export async function loadImageTransformer(
  load: () => Promise<{ default: typeof sharpModule }> = () => import("sharp"),
): Promise<TransformImage | null> {
  const sharp = await load().then(
    (module) => module.default,
    () => null,
  );
  if (!sharp) return null;
  // Images are transformed in parallel, each on one thread, and none is likely to be transformed again.
  sharp.concurrency(1);
  sharp.cache(false);
  sharp.block({ operation: ["VipsForeignLoad"] });
  sharp.unblock({ operation: LOADERS });
  const inTurn = makeTurns();
  return async (content, options) => {
    try {
      return await transform(sharp, content, options, inTurn);
    } catch (error) {
      throw new UnreadableImage(error);
    }
  };
}

type InTurn = <T>(work: () => Promise<T>) => Promise<T>;

function makeTurns(): InTurn {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const result = last.then(work);
    last = result.catch(() => {});
    return result;
  };
}

async function transform(
  sharp: typeof sharpModule,
  content: Buffer,
  options: ImageOptions,
  inTurn: InTurn,
): Promise<TransformedImage> {
  const { width, height, resize, quality } = options;
  // An image with a wrong checksum is read, as browsers do; one that ends too early is not.
  const image = sharp(content, { limitInputPixels: MAX_PIXELS, failOn: "truncated", sequentialRead: true });
  const about = await image.metadata();
  const bytes = decodedBytes(about);
  if (bytes > MAX_DECODED_BYTES) throw new TooManyPixels(`The image has ${bytes} bytes when it is decoded`);
  const { format: found } = about;
  const source = found === "heif" ? "avif" : found;
  const format = options.format === "origin" ? source : options.format;
  const resized = image
    .timeout({ seconds: MAX_SECONDS })
    .autoOrient()
    .resize(width, height, { fit: resize === "contain" ? "inside" : resize, withoutEnlargement: true });
  const run = async () => encode(resized, format, quality).toBuffer();
  const data = await (bytes > LARGE_DECODED_BYTES ? inTurn(run) : run());
  return { content: data, type: MEDIA_TYPES[format] ?? "application/octet-stream" };
}

function decodedBytes({ width, height, channels, depth }: Metadata): number {
  return width * height * channels * (BYTES_OF_SAMPLE[depth] ?? 8);
}

const BYTES_OF_SAMPLE: Readonly<Record<string, number>> = {
  uchar: 1,
  char: 1,
  ushort: 2,
  short: 2,
  uint: 4,
  int: 4,
  float: 4,
};

function encode(image: Sharp, format: string, quality: number): Sharp {
  switch (format) {
    case "jpeg":
      return image.jpeg({ quality });
    case "webp":
      return image.webp({ quality });
    case "avif":
      return image.avif({ quality, effort: 2 });
    case "png":
      return image.png();
    case "gif":
      return image.gif();
    case "tiff":
      return image.tiff({ quality });
    default:
      throw new Error(`Images of the format ${format} are not transformed`);
  }
}
