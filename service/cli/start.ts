import "./compile-cache.ts";

// Not a static import, which would be loaded before the cache is enabled.
await import("../start-service.ts");
