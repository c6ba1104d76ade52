import type { Occasion } from "../../engine/caller/context.ts";
import { occasionOf } from "../../engine/caller/occasion.ts";
import type { GatewayRequest } from "../http.ts";

/** What SQL can know of the request; the path begins below the interface's own. */
export function tableOccasion({ id, method, headers }: GatewayRequest, path: string): Occasion {
  return occasionOf("table", { id, method, path, headers });
}
