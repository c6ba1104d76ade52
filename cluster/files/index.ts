export { collectFiles, noteStrayFiles } from "./collect-files.ts";
export {
  type BytePart,
  ContentTooLarge,
  type DraftFile,
  type FileChunks,
  type FileStore,
  TooManyUploads,
  type UnfinishedUploads,
} from "./file-store.ts";
export { makeFolderStore } from "./folder-store.ts";
export { StoreFull } from "./free-space.ts";
export { openFileStore, openFiles } from "./open-files.ts";
export { makeS3Store } from "./s3-store.ts";
export {
  type ImageOptions,
  loadImageTransformer,
  type TransformedImage,
  type TransformImage,
  UnreadableImage,
} from "./transform-image.ts";
