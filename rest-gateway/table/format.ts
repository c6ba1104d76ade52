import type { Format } from "../statement/intent.ts";
import { type MediaType, nameOf } from "./parse/media-type.ts";

/** A media type that the client accepts, as the planner knows it. */
export function formatOf(media: MediaType): Format {
  switch (media.kind) {
    case "named":
      return { kind: "media", type: media.name };
    case "object":
      return { kind: "object", type: nameOf(media), nulls: media.nulls };
    case "array":
      return { kind: "array", type: nameOf(media), nulls: media.nulls };
    case "plan":
      return { kind: "plan", type: nameOf(media), of: formatOf(media.for), as: media.format, options: media.options };
  }
}
