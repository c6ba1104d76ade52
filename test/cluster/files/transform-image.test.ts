import { crc32, deflateSync } from "node:zlib";
import { expect, test } from "vitest";
import { type ImageOptions, loadImageTransformer, UnreadableImage } from "../../../cluster/files/index.ts";

const OPTIONS: ImageOptions = { width: 10, height: null, resize: "cover", quality: 80, format: "origin" };

function chunk(type: string, content: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(type, "latin1"), content]);
  const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(content.length);
  check.writeUInt32BE(crc32(named));
  return Buffer.concat([length, named, check]);
}

/** A blank PNG, as PNG counts: bits of a sample, and colour type 2 (RGB) or 6 (RGBA). */
function blank(width: number, height: number, { bits = 8, colour = 6 } = {}): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([bits, colour, 0, 0, 0], 8);
  const line = 1 + (width * bits * (colour === 6 ? 4 : 3)) / 8;
  const parts = [
    chunk("IHDR", header),
    chunk("IDAT", deflateSync(Buffer.alloc(line * height))),
    chunk("IEND", Buffer.alloc(0)),
  ];
  return Buffer.concat([Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), ...parts]);
}

test("without the package sharp there is no transformer", async () => {
  expect(await loadImageTransformer(() => Promise.reject(new Error("Cannot find package 'sharp'")))).toBeNull();
});

test("an image of few bytes that would fill the memory is not decoded", async () => {
  const transform = (await loadImageTransformer())!;
  const heavy = blank(5_000, 4_000, { bits: 16 });
  expect(heavy.length).toBeLessThan(200_000);
  const refusal = await transform(heavy, OPTIONS).catch((error) => error);
  expect(refusal).toBeInstanceOf(UnreadableImage);
  expect(refusal.cause.message).toBe("The image has 160000000 bytes when it is decoded");
});

test("large images are transformed in turn, also after one that is broken", async () => {
  const transform = (await loadImageTransformer())!;
  const large = blank(4_000, 3_200);
  const broken = large.subarray(0, large.length - 20_000);
  const results = await Promise.allSettled([broken, large, large].map((content) => transform(content, OPTIONS)));
  expect(results.map(({ status }) => status)).toEqual(["rejected", "fulfilled", "fulfilled"]);
});
