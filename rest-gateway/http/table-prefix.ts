/** Below which address the table interface answers. */
export const TABLE_PREFIX = "/rest/v1";
