import { readFileSync } from "node:fs";
import { join } from "node:path";

/** The name of the product in pages, Studio and API documents. */
export const PRODUCT_NAME = "Content service";

/** The product's mark, as SVG. */
export const PRODUCT_MARK = readFileSync(join(import.meta.dirname, "mark.svg"), "utf8").trim();

/** The mark as the address of a page's icon. */
export const PRODUCT_ICON = `data:image/svg+xml,${encodeURIComponent(PRODUCT_MARK)}`;
