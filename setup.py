"""Builds the compiled parts where a C compiler is there; without one the portable ones serve."""

from setuptools import Extension, setup

try:
    from Cython.Build import cythonize
except ImportError:
    modules = []
else:
    parts = [("uncork.readers.scan", "src/uncork/readers/scan.pyx"), ("uncork.levels", "src/uncork/levels.pyx")]
    modules = cythonize([Extension(name, [path]) for name, path in parts], language_level=3)
    for module in modules:
        module.optional = True  # a failure to compile is told, and the installation goes on

setup(ext_modules=modules)
