"""An MCP server on the published SDK, over standard input and output."""

from mcp.server import MCPServer

server = MCPServer("python")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
def fail() -> str:
    """Fails."""
    raise ValueError("it failed in Python")


@server.prompt()
def greet(who: str) -> str:
    """Greets."""
    return f"hello {who}"


server.run("stdio")
